package embedded

import (
	"math"
	"strconv"
	"strings"
)

// The engine's own counters take integers in forms that Redis refuses, and
// those of hashes wrap around. So the sums are made here.

// INCR key, DECR key, INCRBY key n, DECRBY key n
func (s *Server) incr(c *call) {
	by, ok := c.increment()
	if !ok {
		return
	}
	key := c.args[0]
	n, ok := s.sum(c, by, errInteger, "GET", key)
	if !ok {
		return
	}
	_, _ = s.ask(c, "SET", key, strconv.FormatInt(n, 10), "KEEPTTL")
	s.announce(notifyString, "incrby", dbKey{c.db, key})
	c.peer.WriteInt(int(n))
}

// increment is what one of the four commands adds.
func (c *call) increment() (by int64, ok bool) {
	by, ok = 1, true
	if strings.HasSuffix(c.name, "BY") {
		if !c.arity(2, 2) {
			return 0, false
		}
		by, ok = c.number(c.args[1])
	} else if !c.arity(1, 1) {
		return 0, false
	}
	if !ok || strings.HasPrefix(c.name, "INCR") {
		return by, ok
	}
	if by == math.MinInt64 {
		c.peer.WriteError("ERR decrement would overflow")
		return 0, false
	}
	return -by, true
}

// HINCRBY key field n
func (s *Server) hincrby(c *call) {
	if !c.arity(3, 3) {
		return
	}
	by, ok := c.number(c.args[2])
	if !ok {
		return
	}
	key, field := c.args[0], c.args[1]
	n, ok := s.sum(c, by, "ERR hash value is not an integer", "HGET", key, field)
	if !ok {
		return
	}
	_, _ = s.ask(c, "HSET", key, field, strconv.FormatInt(n, 10))
	c.peer.WriteInt(int(n))
}

// sum adds to the number that a command reads, which is 0 if there is none.
// It replies with an error if that is no integer, or the sum is none.
func (s *Server) sum(c *call, by int64, noInteger, name string, args ...string) (int64, bool) {
	old, err := s.ask(c, name, args...)
	if err != nil {
		c.peer.WriteError(err.Error())
		return 0, false
	}
	var n int64
	if text, ok := old.(string); ok {
		if n, ok = parseInteger(text); !ok {
			c.peer.WriteError(noInteger)
			return 0, false
		}
	}
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		c.peer.WriteError("ERR increment or decrement would overflow")
		return 0, false
	}
	return n + by, true
}
