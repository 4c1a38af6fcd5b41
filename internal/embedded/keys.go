package embedded

import (
	"slices"
	"strconv"
	"strings"
)

// passMove runs a command that moves something from its first key to its
// second, TTL included.
func (s *Server) passMove(c *call) {
	s.passOnly(c)
	if len(c.args) < 2 {
		return
	}
	s.changed(c, c.args[0])
	s.changed(c, c.args[1])
}

// COPY source destination [DB n] [REPLACE]
func (s *Server) copyKey(c *call) {
	if !c.arity(2, -1) {
		return
	}
	to, replace, ok := c.copyOptions()
	if !ok {
		return
	}
	// A script's locks allow no look into another database.
	if to.db != c.db && c.client == nil {
		c.peer.WriteError("ERR the embedded server does not support COPY to another database in scripts")
		return
	}
	from := dbKey{c.db, c.args[0]}
	if replace && from != to && s.askInt(c, "EXISTS", from.key) == 1 {
		// The engine would leave the old TTL and the data of another type.
		s.delete(c, to)
	}
	s.passOnly(c)
	s.land(c, to)
}

func (c *call) copyOptions() (to dbKey, replace, ok bool) {
	to = dbKey{c.db, c.args[1]}
	for rest := c.args[2:]; len(rest) > 0; rest = rest[1:] {
		switch option := strings.ToUpper(rest[0]); {
		case option == "REPLACE":
			replace = true
		case option == "DB" && len(rest) > 1:
			if to.db, ok = c.database(rest[1]); !ok {
				return to, replace, false
			}
			rest = rest[1:]
		default:
			c.peer.WriteError(errSyntax)
			return to, replace, false
		}
	}
	return to, replace, true
}

// database parses the number of one and replies with an error if it is none.
func (c *call) database(arg string) (int, bool) {
	n, ok := c.number(arg)
	if ok && (n < 0 || n >= databases) {
		c.peer.WriteError("ERR DB index is out of range")
		return 0, false
	}
	return int(n), ok
}

// MOVE key db
func (s *Server) move(c *call) {
	if !c.arity(2, 2) {
		return
	}
	db, ok := c.database(c.args[1])
	if !ok {
		return
	}
	s.passOnly(c)
	s.changed(c, c.args[0])
	s.land(c, dbKey{db, c.args[0]})
}

// delete removes a key of any database. Only outside scripts may that be
// another database than the caller's.
func (s *Server) delete(c *call, k dbKey) {
	if k.db == c.db {
		s.askInt(c, "DEL", k.key)
		return
	}
	s.engine.DB(k.db).Del(k.key)
}

// land notes that a key of any database was written, as delete does.
func (s *Server) land(c *call, k dbKey) {
	if k.db == c.db {
		s.changed(c, k.key)
		return
	}
	delete(s.zsets, k)
	s.deadlines.remove(k)
	if at := s.engine.DB(k.db).TTL(k.key); at > 0 {
		s.deadlines.set(k, at.Milliseconds())
	}
}

// ZUNIONSTORE destination ..., and the others that store a set. The engine
// would leave an empty set, and in some cases the old TTL.
func (s *Server) storeSet(c *call) {
	n, err := s.ask(c, c.name, c.args...)
	if err != nil {
		c.peer.WriteError(err.Error())
		return
	}
	size, _ := n.(int)
	if size == 0 {
		s.askInt(c, "DEL", c.args[0])
	}
	s.askInt(c, "PERSIST", c.args[0])
	s.changed(c, c.args[0])
	c.peer.WriteInt(size)
}

// FLUSHALL, FLUSHDB
func (s *Server) flush(c *call) {
	if _, err := s.ask(c, c.name, c.args...); err != nil {
		c.peer.WriteError(err.Error())
		return
	}
	s.forget(func(db int) bool { return c.name == "FLUSHALL" || db == c.db })
	c.peer.WriteOK()
}

// SCAN cursor [MATCH pattern] [COUNT n] [TYPE type]. It returns all keys at
// once, which Redis is free to do too. Patterns are ours, for the engine
// panics on some.
func (s *Server) scan(c *call) {
	args, pattern := cutMatch(c.args, 1)
	reply, err := s.ask(c, c.name, args...)
	if err != nil {
		c.peer.WriteError(err.Error())
		return
	}
	keys := slices.DeleteFunc(stringsOf(reply.([]any)[1]), func(key string) bool { return !glob(pattern, key) })
	c.writeScan(0, len(keys))
	for _, key := range keys {
		c.peer.WriteBulk(key)
	}
}

func (c *call) writeScan(cursor uint64, n int) {
	c.peer.WriteLen(2)
	c.peer.WriteBulk(strconv.FormatUint(cursor, 10))
	c.peer.WriteLen(n)
}

// KEYS pattern
func (s *Server) keys(c *call) {
	if !c.arity(1, 1) {
		return
	}
	reply, _ := s.ask(c, "KEYS", "*")
	list, _ := reply.([]any)
	keys := slices.DeleteFunc(stringsOf(list), func(key string) bool { return !glob(c.args[0], key) })
	c.peer.WriteStrings(keys)
}

// HSCAN key cursor [MATCH pattern] [COUNT n], and SSCAN. As with scan, all
// comes at once.
func (s *Server) scanMembers(c *call) {
	if !c.arity(2, -1) {
		return
	}
	rest, pattern := cutMatch(c.args[2:], 0)
	if _, ok := c.scanCount(rest); !ok {
		return
	}
	reply, err := s.ask(c, c.name, c.args[0], c.args[1])
	if err != nil {
		c.peer.WriteError(err.Error())
		return
	}
	step := 1
	if c.name == "HSCAN" {
		step = 2
	}
	var found []string
	for item := range slices.Chunk(stringsOf(reply.([]any)[1]), step) {
		if glob(pattern, item[0]) {
			found = append(found, item...)
		}
	}
	c.writeScan(0, len(found))
	for _, item := range found {
		c.peer.WriteBulk(item)
	}
}

// scanCount reads [COUNT n] and replies with an error if it is wrong.
func (c *call) scanCount(options []string) (count int, ok bool) {
	count = 10
	for ; len(options) > 0; options = options[2:] {
		if len(options) < 2 || !strings.EqualFold(options[0], "COUNT") {
			c.peer.WriteError(errSyntax)
			return 0, false
		}
		n, ok := c.number(options[1])
		if !ok {
			return 0, false
		}
		if n < 1 {
			c.peer.WriteError(errSyntax)
			return 0, false
		}
		count = int(n)
	}
	return count, true
}

// cutMatch takes MATCH and its pattern out of the options that begin at
// first.
func cutMatch(args []string, first int) (rest []string, pattern string) {
	rest, pattern = slices.Clone(args), "*"
	for i := first; i+1 < len(rest); {
		if !strings.EqualFold(rest[i], "MATCH") {
			i += 2
			continue
		}
		pattern = rest[i+1]
		rest = slices.Delete(rest, i, i+2)
	}
	return rest, pattern
}

// stringsOf turns a reply of strings into a slice.
func stringsOf(reply any) []string {
	list, _ := reply.([]any)
	out := make([]string, 0, len(list))
	for _, item := range list {
		text, _ := item.(string)
		out = append(out, text)
	}
	return out
}
