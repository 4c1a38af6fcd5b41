package embedded

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// version is the Redis that the engine says it is in its answer to HELLO.
const version = "8.4.0"

// section is a part of INFO.
type section struct {
	name  string // of the option
	title string
	lines []string
}

// INFO [section ...]
func (s *Server) info(c *call) {
	wanted := func(name string) bool {
		return len(c.args) == 0 || slices.ContainsFunc(c.args, func(arg string) bool {
			arg = strings.ToLower(arg)
			return arg == name || arg == "default" || arg == "all" || arg == "everything"
		})
	}
	var parts []string
	for _, sec := range s.sections(c) {
		if wanted(sec.name) {
			parts = append(parts, strings.Join(append([]string{"# " + sec.title}, sec.lines...), "\r\n")+"\r\n")
		}
	}
	c.peer.WriteBulk(strings.Join(parts, "\r\n"))
}

func (s *Server) sections(c *call) []section {
	return []section{
		{"server", "Server", []string{"redis_version:" + version, "redis_mode:standalone"}},
		{"clients", "Clients", []string{fmt.Sprintf("connected_clients:%d", s.srv.ClientsLen())}},
		{"memory", "Memory", []string{"maxmemory:0", "maxmemory_policy:noeviction"}},
		{"persistence", "Persistence", []string{"loading:0", "aof_enabled:0", "rdb_bgsave_in_progress:0"}},
		{"stats", "Stats", []string{
			fmt.Sprintf("total_connections_received:%d", s.srv.TotalConnections()),
			fmt.Sprintf("total_commands_processed:%d", s.srv.TotalCommands()),
			fmt.Sprintf("pubsub_channels:%d", len(s.channels)),
			fmt.Sprintf("pubsub_patterns:%d", len(s.patterns)),
		}},
		{"replication", "Replication", []string{"role:master", "connected_slaves:0"}},
		{"keyspace", "Keyspace", s.keyspace(c)},
		{"keyfuse", "Keyfuse", []string{"embedded:1"}},
	}
}

// keyspace has a line for each database with keys. A script sees only its
// own: it cannot select another.
func (s *Server) keyspace(c *call) (lines []string) {
	expires := map[int]int{}
	for k := range maps.Keys(s.deadlines.of) {
		expires[k.db]++
	}
	for db := range databases {
		if n := s.size(c, db); n > 0 {
			lines = append(lines, fmt.Sprintf("db%d:keys=%d,expires=%d,avg_ttl=0", db, n, expires[db]))
		}
	}
	return lines
}

func (s *Server) size(c *call, db int) int64 {
	if db == c.db {
		return s.askInt(c, "DBSIZE")
	}
	if c.client == nil {
		return 0
	}
	other := &call{peer: newPeer(nil)}
	other.peer.Ctx = s.newContext()
	_, _ = s.ask(other, "SELECT", fmt.Sprint(db))
	return s.askInt(other, "DBSIZE")
}

// CLIENT ID, CLIENT SETINFO, and what the engine knows: GETNAME and SETNAME.
func (s *Server) clientCmd(c *call) {
	if !c.arity(1, -1) {
		return
	}
	switch sub := strings.ToUpper(c.args[0]); {
	case sub == "ID" && len(c.args) == 1:
		c.peer.WriteInt(c.client.id)
	case sub == "SETINFO" && len(c.args) == 3:
		c.peer.WriteOK() // there is no CLIENT LIST to show it
	default:
		s.passOnly(c)
	}
}
