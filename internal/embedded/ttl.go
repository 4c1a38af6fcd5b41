package embedded

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The engine never counts a TTL down and takes any duration for one. So every
// TTL it holds is a deadline, in ms since 1970: RENAME, COPY, KEEPTTL, DEL and
// all else that carries or drops a TTL works unseen, and comparing TTLs
// compares deadlines.

// deadlineOf turns the argument of an option or command such as PX into a
// deadline. It is never later than the engine can hold.
func (s *Server) deadlineOf(unit string, n int64) (at int64, ok bool) {
	if !strings.HasPrefix(unit, "P") {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		n *= 1000
	}
	if !strings.HasSuffix(unit, "AT") {
		if n > math.MaxInt64-s.now {
			return 0, false
		}
		n += s.now
	}
	return min(n, lastDeadline), true
}

// parseDeadline reads a TTL that a command sets. Redis allows none below 1.
func (s *Server) parseDeadline(c *call, unit, arg string) (string, bool) {
	n, ok := c.number(arg)
	if !ok {
		return "", false
	}
	at, ok := s.deadlineOf(unit, n)
	if !ok || n <= 0 {
		c.invalidExpire()
		return "", false
	}
	return strconv.FormatInt(at, 10), true
}

func (c *call) invalidExpire() {
	c.peer.WriteError(fmt.Sprintf("ERR invalid expire time in '%s' command", strings.ToLower(c.name)))
}

// SET key value [NX|XX] [GET] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL]
func (s *Server) set(c *call) {
	if !c.arity(2, -1) {
		return
	}
	if args, ok := s.setOptions(c); ok {
		s.pass(c, "SET", args...)
		s.changed(c, c.args[0])
	}
}

// setOptions returns the arguments of a SET with its TTL as a deadline, or
// replies with an error.
func (s *Server) setOptions(c *call) (args []string, ok bool) {
	args = append(args, c.args[:2]...)
	seen := map[string]bool{} // kinds of options of which one may be given
	for rest := c.args[2:]; len(rest) > 0; rest = rest[1:] {
		option := strings.ToUpper(rest[0])
		kind := setOptionKind(option)
		takesValue := kind == "ttl" && option != "KEEPTTL"
		if kind == "" || seen[kind] || takesValue && len(rest) < 2 {
			c.peer.WriteError(errSyntax)
			return nil, false
		}
		seen[kind] = kind != "get"
		if !takesValue {
			args = append(args, option)
			continue
		}
		at, ok := s.parseDeadline(c, option, rest[1])
		if !ok {
			return nil, false
		}
		args, rest = append(args, "PX", at), rest[1:]
	}
	return args, true
}

func setOptionKind(option string) string {
	switch option {
	case "GET":
		return "get"
	case "NX", "XX":
		return "condition"
	case "KEEPTTL", "EX", "PX", "EXAT", "PXAT":
		return "ttl"
	}
	return ""
}

// changed notes that a command changed a key as a whole.
func (s *Server) changed(c *call, key string) {
	delete(s.zsets, dbKey{c.db, key})
	s.reindex(c, key)
}

// SETEX key s value, PSETEX key ms value
func (s *Server) setex(c *call) {
	if !c.arity(3, 3) {
		return
	}
	unit := strings.Replace(c.name, "SETEX", "EX", 1)
	at, ok := s.parseDeadline(c, unit, c.args[1])
	if !ok {
		return
	}
	s.pass(c, "PSETEX", c.args[0], at, c.args[2])
	s.changed(c, c.args[0])
}

// GETEX key [EX s|PX ms|EXAT s|PXAT ms|PERSIST]
func (s *Server) getex(c *call) {
	if len(c.args) != 3 {
		s.passOnly(c) // with PERSIST, or as GET, or wrong
		if len(c.args) > 0 {
			s.reindex(c, c.args[0])
		}
		return
	}
	key, unit := c.args[0], strings.ToUpper(c.args[1])
	switch unit {
	case "EX", "PX", "EXAT", "PXAT":
	default:
		c.peer.WriteError(errSyntax)
		return
	}
	if kind, _ := s.ask(c, "GET", key); kind == nil {
		s.pass(c, "GET", key) // absent, or of another type
		return
	}
	at, ok := s.parseDeadline(c, unit, c.args[2])
	if !ok {
		return
	}
	s.pass(c, "GETEX", key, "PX", at)
	s.expireAt(c, key, at)
}

// expireAt gives a key a deadline. A key whose time has come is deleted and
// did not expire: Redis has no event for that.
func (s *Server) expireAt(c *call, key, at string) {
	if ms, _ := strconv.ParseInt(at, 10, 64); ms <= s.now {
		s.askInt(c, "DEL", key)
	} else {
		s.askInt(c, "PEXPIRE", key, at)
	}
	s.changed(c, key)
}

// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT key n [NX|XX|GT|LT]
func (s *Server) expireKey(c *call) {
	if !c.arity(2, -1) {
		return
	}
	option, ok := c.expireOptions()
	if !ok {
		return
	}
	n, ok := c.number(c.args[1])
	if !ok {
		return
	}
	at, ok := s.deadlineOf(strings.Replace(c.name, "EXPIRE", "EX", 1), n)
	if !ok {
		c.invalidExpire()
		return
	}
	key := c.args[0]
	if old := s.askInt(c, "PTTL", key); old == -2 || !option.allow(old, at) {
		c.peer.WriteInt(0)
		return
	}
	s.expireAt(c, key, strconv.FormatInt(at, 10))
	c.peer.WriteInt(1)
}

type expireOptions struct{ nx, xx, gt, lt bool }

// allow reports whether a deadline may take the place of old, which is -1 for
// none.
func (o expireOptions) allow(old, at int64) bool {
	switch {
	case o.nx && old != -1, o.xx && old == -1:
		return false
	case o.gt && (old == -1 || at <= old):
		return false
	case o.lt && old != -1 && at >= old:
		return false
	}
	return true
}

func (c *call) expireOptions() (o expireOptions, ok bool) {
	for _, arg := range c.args[2:] {
		switch strings.ToUpper(arg) {
		case "NX":
			o.nx = true
		case "XX":
			o.xx = true
		case "GT":
			o.gt = true
		case "LT":
			o.lt = true
		default:
			c.peer.WriteError("ERR Unsupported option " + arg)
			return o, false
		}
	}
	switch {
	case o.nx && (o.xx || o.gt || o.lt):
		c.peer.WriteError("ERR NX and XX, GT or LT options at the same time are not compatible")
	case o.gt && o.lt:
		c.peer.WriteError("ERR GT and LT options at the same time are not compatible")
	default:
		return o, true
	}
	return o, false
}

// TTL, PTTL, EXPIRETIME, PEXPIRETIME key
func (s *Server) ttl(c *call) {
	if !c.arity(1, 1) {
		return
	}
	n := s.askInt(c, "PTTL", c.args[0])
	if n >= 0 {
		if strings.HasSuffix(c.name, "TTL") {
			n = max(0, n-s.now)
		}
		if !strings.HasPrefix(c.name, "P") {
			n = (n + 500) / 1000
		}
	}
	c.peer.WriteInt(int(n))
}
