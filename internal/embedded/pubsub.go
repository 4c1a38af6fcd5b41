package embedded

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// topics are channels or patterns and who is subscribed to them.
type topics map[string]map[*client]struct{}

func (t topics) add(c *client, name string) {
	if t[name] == nil {
		t[name] = map[*client]struct{}{}
	}
	t[name][c] = struct{}{}
}

func (t topics) remove(c *client, name string) {
	delete(t[name], c)
	if len(t[name]) == 0 {
		delete(t, name)
	}
}

func (t topics) drop(c *client, names map[string]struct{}) {
	for name := range names {
		t.remove(c, name)
	}
}

// topicsOf returns what a command such as PSUBSCRIBE is about: all topics of
// the kind, and those of its client.
func (s *Server) topicsOf(c *call) (topics, map[string]struct{}) {
	if c.name[0] == 'P' {
		return s.patterns, c.client.patterns
	}
	return s.channels, c.client.channels
}

// SUBSCRIBE, PSUBSCRIBE name ...
func (s *Server) subscribe(c *call) {
	if !c.arity(1, -1) {
		return
	}
	all, mine := s.topicsOf(c)
	c.client.link.setLimit(s.hardLimit)
	for _, name := range c.args {
		all.add(c.client, name)
		mine[name] = struct{}{}
		c.confirm(&name)
	}
}

// UNSUBSCRIBE, PUNSUBSCRIBE [name ...]
func (s *Server) unsubscribe(c *call) {
	all, mine := s.topicsOf(c)
	names := c.args
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(mine))
	}
	for _, name := range names {
		all.remove(c.client, name)
		delete(mine, name)
		c.confirm(&name)
	}
	if len(names) == 0 {
		c.confirm(nil)
	}
	if c.client.subscriptions() == 0 {
		c.client.link.setLimit(clientLimit)
	}
}

// confirm replies to a subscription command for one name.
func (c *call) confirm(name *string) {
	c.peer.Block(func(w *server.Writer) {
		w.WritePushLen(3)
		w.WriteBulk(strings.ToLower(c.name))
		if name == nil {
			w.WriteNull()
		} else {
			w.WriteBulk(*name)
		}
		w.WriteInt(c.client.subscriptions())
	})
}

// publish sends a message to all who are subscribed to its channel and says
// how many that were. It never waits: links buffer.
func (s *Server) publish(channel, message string) int {
	n := 0
	for c := range s.channels[channel] {
		c.send("message", channel, message)
		n++
	}
	for pattern, clients := range s.patterns {
		if !glob(pattern, channel) {
			continue
		}
		for c := range clients {
			c.send("pmessage", pattern, channel, message)
			n++
		}
	}
	return n
}

// send writes a message to a client. An error means that it is gone.
func (c *client) send(items ...string) {
	mark := byte('*')
	if c.peer.Resp3 {
		mark = '>'
	}
	_, _ = c.link.Write(appendStrings(nil, mark, items...))
}

// PUBLISH channel message
func (s *Server) publishCmd(c *call) {
	if c.arity(2, 2) {
		c.peer.WriteInt(s.publish(c.args[0], c.args[1]))
	}
}

// PUBSUB CHANNELS [pattern], PUBSUB NUMSUB [channel ...], PUBSUB NUMPAT
func (s *Server) pubsub(c *call) {
	if !c.arity(1, -1) {
		return
	}
	switch sub := strings.ToUpper(c.args[0]); {
	case sub == "CHANNELS" && len(c.args) <= 2:
		names := slices.Sorted(maps.Keys(s.channels))
		if len(c.args) == 2 {
			names = slices.DeleteFunc(names, func(name string) bool { return !glob(c.args[1], name) })
		}
		c.peer.WriteStrings(names)
	case sub == "NUMSUB":
		c.peer.WriteLen(2 * (len(c.args) - 1))
		for _, name := range c.args[1:] {
			c.peer.WriteBulk(name)
			c.peer.WriteInt(len(s.channels[name]))
		}
	case sub == "NUMPAT" && len(c.args) == 1:
		c.peer.WriteInt(len(s.patterns))
	default:
		c.unknownSubcommand()
	}
}

// unknownSubcommand is Redis's reply to one, or to one with arguments it does
// not take.
func (c *call) unknownSubcommand() {
	c.peer.WriteError(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s'. Try %s HELP.", c.args[0], c.name))
}

// PING [message]
func (s *Server) ping(c *call) {
	if !c.arity(0, 1) {
		return
	}
	message := strings.Join(c.args, "")
	switch {
	case c.client != nil && c.client.subscriptions() > 0 && !c.peer.Resp3:
		c.peer.WriteStrings([]string{"pong", message})
	case len(c.args) == 0:
		c.peer.WriteInline("PONG")
	default:
		c.peer.WriteBulk(message)
	}
}
