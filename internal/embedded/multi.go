package embedded

import (
	"fmt"
	"strings"
)

// transaction is what a client queued since MULTI. The engine's own queue is
// not used: a relative TTL in it would count from MULTI, not from EXEC.
type transaction struct {
	calls  []*call
	broken bool // a command could not be queued
}

func (s *Server) multi(c *call) {
	switch {
	case !c.arity(0, 0):
	case c.client.tx != nil:
		c.peer.WriteError("ERR MULTI calls can not be nested")
	default:
		c.client.tx = &transaction{}
		c.peer.WriteOK()
	}
}

func (s *Server) watch(c *call) {
	if c.client.tx != nil {
		c.peer.WriteError("ERR WATCH inside MULTI is not allowed")
		return
	}
	s.passOnly(c)
}

func (s *Server) enqueue(c *call) {
	tx := c.client.tx
	if reason := s.check(c); reason != "" {
		tx.broken = true
		c.peer.WriteError(reason)
		return
	}
	tx.calls = append(tx.calls, c)
	c.peer.WriteInline("QUEUED")
}

// check says what is wrong with a command that is to be queued: that there is
// none of that name, or not with so many arguments. All else shows at EXEC. The
// engine counts arguments, in a transaction that is never executed.
func (s *Server) check(c *call) (reason string) {
	if c.blocks() {
		return fmt.Sprintf("ERR the embedded server does not support %s inside MULTI", c.name)
	}
	switch {
	case c.name == "CONFIG", c.name == "CLIENT", c.name == "INFO":
		return "" // the engine knows less of these than we do
	case !s.srv.IsRegisteredCommand(c.name):
		return c.unknown()
	}
	judge := &call{peer: s.validator}
	defer func() { _, _ = s.ask(judge, "DISCARD") }()
	_, _ = s.ask(judge, "MULTI")
	if _, err := s.ask(judge, c.name, c.args...); err != nil && strings.Contains(err.Error(), "wrong number of arguments") {
		return err.Error()
	}
	return ""
}

func (s *Server) exec(c *call) {
	tx := c.client.tx
	if !c.arity(0, 0) {
		return
	}
	if tx == nil {
		c.peer.WriteError("ERR EXEC without MULTI")
		return
	}
	c.client.tx = nil
	unchanged := s.endWatch(c)
	switch {
	case tx.broken:
		c.peer.WriteError("EXECABORT Transaction discarded because of previous errors.")
	case !unchanged:
		c.writeNullArray()
	default:
		c.peer.WriteLen(len(tx.calls))
		for _, queued := range tx.calls {
			queued.db = c.client.db
			s.scriptDB = queued.db
			s.execute(queued)
		}
	}
}

// endWatch ends WATCH and reports whether no watched key changed. An empty
// transaction asks the engine just that.
func (s *Server) endWatch(c *call) (unchanged bool) {
	_, _ = s.ask(c, "MULTI")
	reply, _ := s.ask(c, "EXEC")
	return reply != nil
}

func (s *Server) discard(c *call) {
	if c.client.tx == nil {
		c.peer.WriteError("ERR DISCARD without MULTI")
		return
	}
	c.client.tx = nil
	s.endWatch(c)
	c.peer.WriteOK()
}
