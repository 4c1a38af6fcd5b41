//go:build unix

package redistest

import (
	"fmt"
	"slices"
)

const (
	moveSlots  = 16    // on their way at once; a node writes its configuration once for all
	moveChunk  = 100   // keys a MIGRATE
	moveWithin = 4_000 // milliseconds for one; less than a client waits for it
)

// MoveSlots moves slots with their keys from one running master to another, a
// few at a time, as redis-cli's reshard does: clients may go on using them, and
// are redirected (ASK, MOVED) or put off (TRYAGAIN) meanwhile. All masters that run know
// of it on return; AwaitOK waits for the replicas too.
func (c *Cluster) MoveSlots(from, to *Server, slots ...int) {
	c.t.Helper()
	m, err := c.newMove(from, to)
	if err != nil {
		c.t.Fatalf("redistest: %v", err)
	}
	for some := range slices.Chunk(slots, moveSlots) {
		if err := m.slots(some); err != nil {
			c.t.Fatalf("redistest: moving slots %v from %s to %s: %v", some, from.Addr(), to.Addr(), err)
		}
	}
}

// move is a way for slots.
type move struct {
	from, to     *Server
	fromID, toID string
	told         []*Server // who is told of the new owner, in this order
}

func (c *Cluster) newMove(from, to *Server) (m move, err error) {
	m = move{from: from, to: to}
	if m.fromID, err = from.nodeID(); err != nil {
		return m, err
	}
	if m.toID, err = to.nodeID(); err != nil {
		return m, err
	}
	// The new owner first: were the old one first, nobody would own the slot for
	// a moment, and clients would be sent back and forth.
	others := slices.DeleteFunc(c.Masters(), func(s *Server) bool { return s == from || s == to })
	m.told = slices.Concat([]*Server{to, from}, others)
	return m, nil
}

func (m move) slots(slots []int) error {
	if err := m.to.setSlots(slots, "IMPORTING", m.fromID); err != nil {
		return err
	}
	if err := m.from.setSlots(slots, "MIGRATING", m.toID); err != nil {
		return err
	}
	for _, slot := range slots {
		if err := m.keys(slot); err != nil {
			return fmt.Errorf("the keys of slot %d: %w", slot, err)
		}
	}
	for _, s := range m.told {
		if err := s.setSlots(slots, "NODE", m.toID); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) setSlots(slots []int, state, id string) error {
	pipe := s.admin().Pipeline()
	for _, slot := range slots {
		pipe.Do(s.t.Context(), "CLUSTER", "SETSLOT", slot, state, id)
	}
	if _, err := pipe.Exec(s.t.Context()); err != nil {
		return fmt.Errorf("CLUSTER SETSLOT %s on %s: %w", state, s.Addr(), err)
	}
	return nil
}

// keys moves keys until there are none; new ones are made at the new owner.
func (m move) keys(slot int) error {
	host, port := m.to.hostPort()
	for {
		keys, err := m.from.admin().ClusterGetKeysInSlot(m.from.t.Context(), slot, moveChunk).Result()
		if err != nil || len(keys) == 0 {
			return err
		}
		command := []any{"MIGRATE", host, port, "", 0, moveWithin, "REPLACE", "KEYS"}
		for _, key := range keys {
			command = append(command, key)
		}
		if err := m.from.do(command...); err != nil {
			return err
		}
	}
}
