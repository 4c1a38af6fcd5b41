//go:build unix

package redistest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// node is what one node of a cluster says of another, or of itself: a line of
// CLUSTER NODES.
type node struct {
	id, addr string
	flags    []string
	master   string // the id of a replica's master; "-" for a master
	epoch    int64  // of two that claim a slot, the higher is right
	linked   bool
	slots    []string // "0-5460" or "7", in order
}

// view is what one node says of all that it knows.
type view []node

func (s *Server) nodeID() (string, error) {
	return s.admin().ClusterMyID(s.t.Context()).Result()
}

func (s *Server) view() (view, error) {
	text, err := s.admin().ClusterNodes(s.t.Context()).Result()
	if err != nil {
		return nil, err
	}
	var v view
	for line := range strings.Lines(text) {
		n, err := parseNode(line)
		if err != nil {
			return nil, err
		}
		if n.is("myself") {
			n.addr = s.Addr() // which it learns only from others
		}
		v = append(v, n)
	}
	return v, nil
}

func parseNode(line string) (node, error) {
	fields := strings.Fields(line)
	if len(fields) < 8 {
		return node{}, fmt.Errorf("no line of CLUSTER NODES: %q", line)
	}
	addr, _, _ := strings.Cut(fields[1], "@")
	epoch, err := strconv.ParseInt(fields[6], 10, 64)
	// A slot that is moving is listed twice, as "[7->-id]" too.
	slots := slices.DeleteFunc(fields[8:], func(f string) bool { return strings.HasPrefix(f, "[") })
	return node{
		id: fields[0], addr: addr, flags: strings.Split(fields[2], ","), master: fields[3],
		epoch: epoch, linked: fields[7] == "connected", slots: slots,
	}, err
}

func (n node) is(flag string) bool { return slices.Contains(n.flags, flag) }

// owned are the slots one by one.
func (n node) owned() []int {
	var out []int
	for _, span := range n.slots {
		first, last, isRange := strings.Cut(span, "-")
		if !isRange {
			last = first
		}
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		for slot := from; slot <= to; slot++ {
			out = append(out, slot)
		}
	}
	return out
}

func (v view) find(addr string) (node, bool) {
	i := slices.IndexFunc(v, func(n node) bool { return n.addr == addr })
	if i < 0 {
		return node{}, false
	}
	return v[i], true
}

// of says what v holds of the servers, alike for all nodes that agree; an error
// if it holds any of them for unknown, out of reach or failing.
func (v view) of(servers []*Server) (string, error) {
	var out strings.Builder
	for _, s := range servers {
		n, known := v.find(s.Addr())
		if !known || n.is("handshake") || n.is("noaddr") {
			return "", fmt.Errorf("%s is not known yet", s.Addr())
		}
		if n.is("fail") || n.is("fail?") || !n.linked && !n.is("myself") {
			return "", fmt.Errorf("%s is held for failing: %s", s.Addr(), n.flags)
		}
		fmt.Fprintln(&out, s.Addr(), n.master, n.slots)
	}
	return out.String(), nil
}

// ok says what AwaitOK waits for: nil when it is there.
func (c *Cluster) ok() error {
	servers := running(c.Servers)
	if len(servers) == 0 {
		return errors.New("no node runs")
	}
	var agreed string
	for i, s := range servers {
		said, err := s.healthyView(servers)
		if err != nil {
			return fmt.Errorf("asked %s: %w", s.Addr(), err)
		}
		if i == 0 {
			agreed = said
		}
		if said != agreed {
			return fmt.Errorf("%s says\n%sand %s says\n%s", servers[0].Addr(), agreed, s.Addr(), said)
		}
	}
	return nil
}

func (s *Server) healthyView(servers []*Server) (string, error) {
	info, err := s.admin().ClusterInfo(s.t.Context()).Result()
	if err != nil {
		return "", err
	}
	if !strings.Contains(info, "cluster_state:ok") {
		return "", errors.New("cluster_state is not ok")
	}
	if err := s.replication("role:master", "master_link_status:up"); err != nil {
		return "", err
	}
	v, err := s.view()
	if err != nil {
		return "", err
	}
	return v.of(servers)
}

// merged is what the nodes that run know together: of each node what the one
// with the newest word says, which is mostly that node itself.
func (c *Cluster) merged() (map[string]node, error) {
	known := make(map[string]node)
	for _, s := range running(c.Servers) {
		v, err := s.view()
		if err != nil {
			return nil, fmt.Errorf("asked %s: %w", s.Addr(), err)
		}
		for _, n := range v {
			if old, ok := known[n.addr]; !ok || n.is("myself") || !old.is("myself") && n.epoch > old.epoch {
				known[n.addr] = n
			}
		}
	}
	if len(known) == 0 {
		return nil, errors.New("no node runs")
	}
	return known, nil
}

// nodes is merged, or the end of the test.
func (c *Cluster) nodes() map[string]node {
	c.t.Helper()
	known, err := c.merged()
	if err != nil {
		c.t.Fatalf("redistest: %v", err)
	}
	return known
}

// owner is whose the slot is by the newest claim that a running node knows of.
func (c *Cluster) owner(slot int) (*Server, error) {
	known, err := c.merged()
	if err != nil {
		return nil, err
	}
	var best node
	for _, n := range known {
		if n.master == "-" && n.epoch >= best.epoch && slices.Contains(n.owned(), slot) {
			best = n
		}
	}
	if owner := at(c.Servers, best.addr); owner != nil {
		return owner, nil
	}
	return nil, fmt.Errorf("slot %d is nobody's", slot)
}

// Master is the server that owns the slot by what the nodes that run know. For
// a while after its end that is a server which does not run.
func (c *Cluster) Master(slot int) *Server {
	c.t.Helper()
	owner, err := c.owner(slot)
	if err != nil {
		c.t.Fatalf("redistest: %v", err)
	}
	return owner
}

// Masters are the masters that run, in the order of Servers; one that lost all
// its slots to MoveSlots is still one of them.
func (c *Cluster) Masters() []*Server {
	c.t.Helper()
	known := c.nodes()
	return slices.DeleteFunc(running(c.Servers), func(s *Server) bool { return known[s.Addr()].master != "-" })
}

// Replicas are the master's replicas, those that don't run included.
func (c *Cluster) Replicas(master *Server) []*Server {
	c.t.Helper()
	known := c.nodes()
	id := known[master.Addr()].id
	return slices.DeleteFunc(slices.Clone(c.Servers), func(s *Server) bool { return known[s.Addr()].master != id })
}

// Slots are the slots that a server owns, in order; none for a replica.
func (c *Cluster) Slots(s *Server) []int {
	c.t.Helper()
	return c.nodes()[s.Addr()].owned()
}
