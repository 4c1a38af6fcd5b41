package embedded

import (
	"slices"
	"strconv"
	"strings"
)

// rangeKind says what the ends of a range are.
type rangeKind int

const (
	byRank rangeKind = iota
	byScore
	byLex
)

func kindOf(command string) rangeKind {
	switch {
	case strings.HasSuffix(command, "BYSCORE"):
		return byScore
	case strings.HasSuffix(command, "BYLEX"):
		return byLex
	}
	return byRank
}

// zrange is what a command of the ZRANGE family asks for.
type zrange struct {
	kind          rangeKind
	min, max      string // in ascending order, except by rank
	reverse       bool
	scores        bool
	limited       bool
	offset, count int64
}

// parse returns what finds the range in a sorted set, or an error.
func (r zrange) parse() (find func(*zset) span, reason string) {
	if r.kind == byRank {
		first, err1 := strconv.ParseInt(r.min, 10, 64)
		last, err2 := strconv.ParseInt(r.max, 10, 64)
		if err1 != nil || err2 != nil {
			return nil, errInteger
		}
		return func(z *zset) span { return z.ranks(first, last) }, ""
	}
	parse, reason := parseScoreBound, "ERR min or max is not a float"
	if r.kind == byLex {
		parse, reason = parseLexBound, "ERR min or max not valid string range item"
	}
	low, ok1 := parse(r.min)
	high, ok2 := parse(r.max)
	if !ok1 || !ok2 {
		return nil, reason
	}
	return func(z *zset) span { return z.between(low, high) }, ""
}

// limit applies LIMIT to a span in the direction of the range.
func (r zrange) limit(p span) span {
	if !r.limited {
		return p
	}
	n := int64(p.len())
	if r.offset < 0 || r.offset >= n {
		return span{}
	}
	n -= r.offset
	if r.count >= 0 {
		n = min(n, r.count)
	}
	if r.reverse {
		hi := p.hi - int(r.offset)
		return span{hi - int(n), hi}
	}
	lo := p.lo + int(r.offset)
	return span{lo, lo + int(n)}
}

// ZRANGE key min max [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES],
// and the older ZREVRANGE, Z[REV]RANGEBYSCORE and Z[REV]RANGEBYLEX.
func (s *Server) zrange(c *call) {
	if !c.arity(3, -1) {
		return
	}
	r, reason := parseZrange(c)
	if reason != "" {
		c.peer.WriteError(reason)
		return
	}
	find, reason := r.parse()
	if reason != "" {
		c.peer.WriteError(reason)
		return
	}
	s.withZset(c, func(_ string, z *zset) {
		p := find(z)
		if r.kind == byRank && r.reverse {
			p = z.flip(p)
		}
		found := slices.Collect(z.elements(r.limit(p), r.reverse))
		c.writeElements(found, r.scores, c.peer.Resp3)
	})
}

func parseZrange(c *call) (r zrange, reason string) {
	r = zrange{kind: kindOf(c.name), min: c.args[1], max: c.args[2], reverse: strings.HasPrefix(c.name, "ZREV")}
	for rest := c.args[3:]; len(rest) > 0; rest = rest[1:] {
		option := strings.ToUpper(rest[0])
		switch {
		case option == "WITHSCORES":
			r.scores = true
		case option == "LIMIT" && len(rest) > 2:
			var err1, err2 error
			r.offset, err1 = strconv.ParseInt(rest[1], 10, 64)
			r.count, err2 = strconv.ParseInt(rest[2], 10, 64)
			if err1 != nil || err2 != nil {
				return r, errInteger
			}
			r.limited, rest = true, rest[2:]
		case c.name == "ZRANGE" && option == "REV":
			r.reverse = true
		case c.name == "ZRANGE" && r.kind == byRank && option == "BYSCORE":
			r.kind = byScore
		case c.name == "ZRANGE" && r.kind == byRank && option == "BYLEX":
			r.kind = byLex
		default:
			return r, errSyntax
		}
	}
	if r.reverse && r.kind != byRank {
		r.min, r.max = r.max, r.min
	}
	return r, r.conflict()
}

func (r zrange) conflict() string {
	switch {
	case r.limited && r.kind == byRank:
		return "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
	case r.scores && r.kind == byLex:
		return "ERR syntax error, WITHSCORES not supported in combination with BYLEX"
	}
	return ""
}

// writeElements replies with elements: a flat list or a list of pairs.
func (c *call) writeElements(list []element, scores, pairs bool) {
	n := len(list)
	if scores && !pairs {
		n *= 2
	}
	c.peer.WriteLen(n)
	for _, e := range list {
		if scores && pairs {
			c.peer.WriteLen(2)
		}
		c.peer.WriteBulk(e.member)
		if scores {
			c.writeScore(e.score)
		}
	}
}

// ZCOUNT, ZLEXCOUNT key min max
func (s *Server) zcount(c *call) {
	if !c.arity(3, 3) {
		return
	}
	r := zrange{kind: byScore, min: c.args[1], max: c.args[2]}
	if c.name == "ZLEXCOUNT" {
		r.kind = byLex
	}
	find, reason := r.parse()
	if reason != "" {
		c.peer.WriteError(reason)
		return
	}
	s.withZset(c, func(_ string, z *zset) { c.peer.WriteInt(find(z).len()) })
}

// ZCARD key
func (s *Server) zcard(c *call) {
	if !c.arity(1, 1) {
		return
	}
	s.withZset(c, func(_ string, z *zset) { c.peer.WriteInt(z.len()) })
}

// ZSCORE key member
func (s *Server) zscore(c *call) {
	if !c.arity(2, 2) {
		return
	}
	s.withZset(c, func(_ string, z *zset) { c.writeScoreOf(z, c.args[1]) })
}

// ZMSCORE key member ...
func (s *Server) zmscore(c *call) {
	if !c.arity(2, -1) {
		return
	}
	s.withZset(c, func(_ string, z *zset) {
		c.peer.WriteLen(len(c.args) - 1)
		for _, member := range c.args[1:] {
			c.writeScoreOf(z, member)
		}
	})
}

func (c *call) writeScoreOf(z *zset, member string) {
	score, ok := z.scores[member]
	if !ok {
		c.peer.WriteNull()
		return
	}
	c.writeScore(score)
}

// ZRANK, ZREVRANK key member [WITHSCORE]
func (s *Server) zrank(c *call) {
	if !c.arity(2, 3) {
		return
	}
	scored := len(c.args) == 3
	if scored && !strings.EqualFold(c.args[2], "WITHSCORE") {
		c.peer.WriteError(errSyntax)
		return
	}
	s.withZset(c, func(_ string, z *zset) {
		member := c.args[1]
		rank, ok := z.rank(member)
		if c.name == "ZREVRANK" {
			rank = z.len() - 1 - rank
		}
		switch {
		case !ok && scored:
			c.writeNullArray()
		case !ok:
			c.peer.WriteNull()
		case scored:
			c.peer.WriteLen(2)
			c.peer.WriteInt(rank)
			c.writeScore(z.scores[member])
		default:
			c.peer.WriteInt(rank)
		}
	})
}

// ZSCAN key cursor [MATCH pattern] [COUNT n]
func (s *Server) zscan(c *call) {
	if !c.arity(2, -1) {
		return
	}
	cursor, err := strconv.ParseUint(c.args[1], 10, 64)
	if err != nil {
		c.peer.WriteError("ERR invalid cursor")
		return
	}
	rest, pattern := cutMatch(c.args[2:], 0)
	count, ok := c.scanCount(rest)
	if !ok {
		return
	}
	s.withZset(c, func(_ string, z *zset) { c.writePage(z, cursor, count, pattern) })
}

func (c *call) writePage(z *zset, cursor uint64, count int, pattern string) {
	members, next := z.page(cursor, count)
	found := make([]string, 0, 2*len(members))
	for _, member := range members {
		if glob(pattern, member) {
			found = append(found, member, formatScore(z.scores[member]))
		}
	}
	c.writeScan(next, len(found))
	for _, item := range found {
		c.peer.WriteBulk(item)
	}
}
