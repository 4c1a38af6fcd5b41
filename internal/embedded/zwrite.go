package embedded

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

var errNotZset = errors.New(errWrongType)

// mirror returns the mirror of a sorted set, which it builds if need be. It
// is nil if there is no such key, and fails if the key holds something else.
func (s *Server) mirror(c *call, key string) (*zset, error) {
	k := dbKey{c.db, key}
	if z := s.zsets[k]; z != nil {
		return z, nil
	}
	kind, _ := s.ask(c, "TYPE", key)
	switch kind {
	case server.Simple("none"):
		return nil, nil
	case server.Simple("zset"):
	default:
		return nil, errNotZset
	}
	reply, err := s.ask(c, "ZRANGE", key, "0", "-1", "WITHSCORES")
	if err != nil {
		return nil, err
	}
	z, flat := newZset(s.seed), stringsOf(reply)
	for i := 0; i+1 < len(flat); i += 2 {
		score, _ := parseScore(flat[i+1])
		z.set(flat[i], score)
	}
	if !s.blocked[k] {
		s.zsets[k] = z
	}
	return z, nil
}

// neverMirror gives up on all sorted sets that a blocking command names: it
// will change them unseen.
func (s *Server) neverMirror(c *call) {
	if !strings.HasPrefix(c.name, "BZ") {
		return
	}
	for _, arg := range c.args {
		k := dbKey{c.db, arg}
		delete(s.zsets, k)
		s.blocked[k] = true
	}
}

// withZset runs do on the mirror of the first argument's sorted set, which is
// an empty one if there is no such key.
func (s *Server) withZset(c *call, do func(key string, z *zset)) {
	key := c.args[0]
	z, err := s.mirror(c, key)
	if err != nil {
		c.peer.WriteError(err.Error())
		return
	}
	if z == nil {
		z = newZset(s.seed)
	}
	do(key, z)
}

type zaddOptions struct{ nx, xx, gt, lt, ch, incr bool }

// ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member ...
func (s *Server) zadd(c *call) {
	if !c.arity(3, -1) {
		return
	}
	o, pairs := parseZadd(c.args[1:])
	if reason := o.refuse(pairs); reason != "" {
		c.peer.WriteError(reason)
		return
	}
	scores, ok := parseScores(pairs)
	if !ok {
		c.peer.WriteError(errFloat)
		return
	}
	s.withZset(c, func(key string, z *zset) {
		change := &zchange{z: z, o: o}
		for i, score := range scores {
			change.add(pairs[2*i+1], score)
		}
		s.store(c, key, change)
		change.reply(c)
	})
}

// ZINCRBY key increment member
func (s *Server) zincrby(c *call) {
	if !c.arity(3, 3) {
		return
	}
	s.zadd(&call{peer: c.peer, client: c.client, db: c.db, name: c.name, args: []string{c.args[0], "INCR", c.args[1], c.args[2]}})
}

func parseZadd(args []string) (o zaddOptions, pairs []string) {
	for i, arg := range args {
		switch strings.ToUpper(arg) {
		case "NX":
			o.nx = true
		case "XX":
			o.xx = true
		case "GT":
			o.gt = true
		case "LT":
			o.lt = true
		case "CH":
			o.ch = true
		case "INCR":
			o.incr = true
		default:
			return o, args[i:]
		}
	}
	return o, nil
}

func (o zaddOptions) refuse(pairs []string) string {
	switch {
	case len(pairs) == 0 || len(pairs)%2 != 0:
		return errSyntax
	case o.nx && o.xx:
		return "ERR XX and NX options at the same time are not compatible"
	case o.gt && (o.lt || o.nx), o.lt && o.nx:
		return "ERR GT, LT, and/or NX options at the same time are not compatible"
	case o.incr && len(pairs) > 2:
		return "ERR INCR option supports a single increment-element pair"
	}
	return ""
}

func parseScores(pairs []string) ([]float64, bool) {
	scores := make([]float64, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		score, ok := parseScore(pairs[i])
		if !ok {
			return nil, false
		}
		scores = append(scores, score)
	}
	return scores, true
}

// zchange is what a ZADD does.
type zchange struct {
	z              *zset
	o              zaddOptions
	added, updated int
	score          float64 // of the last member that was not left alone
	done, nan      bool
	pairs          []string // for the engine
}

func (h *zchange) add(member string, score float64) {
	old, exists := h.z.scores[member]
	if exists && h.o.nx || !exists && h.o.xx {
		return
	}
	if h.o.incr && exists {
		score += old
	}
	if math.IsNaN(score) {
		h.nan = true
		return
	}
	if exists && (h.o.gt && score <= old || h.o.lt && score >= old) {
		return
	}
	h.done, h.score = true, score
	switch {
	case !exists:
		h.added++
	case score != old:
		h.updated++
	default:
		return
	}
	h.z.set(member, score)
	h.pairs = append(h.pairs, strconv.FormatFloat(score, 'g', -1, 64), member)
}

func (h *zchange) reply(c *call) {
	switch {
	case h.nan:
		c.peer.WriteError("ERR resulting score is not a number (NaN)")
	case h.o.incr && h.done:
		c.writeScore(h.score)
	case h.o.incr:
		c.peer.WriteNull()
	case h.o.ch:
		c.peer.WriteInt(h.added + h.updated)
	default:
		c.peer.WriteInt(h.added)
	}
}

// store brings the engine's sorted set up to a changed mirror.
func (s *Server) store(c *call, key string, h *zchange) {
	if len(h.pairs) == 0 {
		return
	}
	s.askInt(c, "ZADD", append([]string{key}, h.pairs...)...)
	if k := (dbKey{c.db, key}); !s.blocked[k] {
		s.zsets[k] = h.z
	}
}

// take removes members from a sorted set. Without members the key is gone.
func (s *Server) take(c *call, key string, z *zset, members []string) int {
	removed := []string{key}
	for _, member := range members {
		if z.remove(member) {
			removed = append(removed, member)
		}
	}
	if len(removed) == 1 {
		return 0
	}
	s.askInt(c, "ZREM", removed...)
	if z.len() == 0 {
		s.changed(c, key)
	}
	return len(removed) - 1
}

// ZREM key member ...
func (s *Server) zrem(c *call) {
	if !c.arity(2, -1) {
		return
	}
	s.withZset(c, func(key string, z *zset) {
		c.peer.WriteInt(s.take(c, key, z, c.args[1:]))
	})
}

// ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX key min max
func (s *Server) zremrange(c *call) {
	if !c.arity(3, 3) {
		return
	}
	r := zrange{kind: kindOf(c.name), min: c.args[1], max: c.args[2]}
	find, reason := r.parse()
	if reason != "" {
		c.peer.WriteError(reason)
		return
	}
	s.withZset(c, func(key string, z *zset) {
		var members []string
		for e := range z.elements(find(z), false) {
			members = append(members, e.member)
		}
		c.peer.WriteInt(s.take(c, key, z, members))
	})
}

// ZPOPMIN, ZPOPMAX key [count]
func (s *Server) zpop(c *call) {
	if !c.arity(1, 2) {
		return
	}
	count := int64(1)
	if len(c.args) == 2 {
		n, err := strconv.ParseInt(c.args[1], 10, 64)
		if err != nil || n < 0 {
			c.peer.WriteError("ERR value is out of range, must be positive")
			return
		}
		count = n
	}
	s.withZset(c, func(key string, z *zset) {
		p, reverse := span{0, int(min(count, int64(z.len())))}, c.name == "ZPOPMAX"
		if reverse {
			p = z.flip(p)
		}
		popped := slices.Collect(z.elements(p, reverse))
		var members []string
		for _, e := range popped {
			members = append(members, e.member)
		}
		s.take(c, key, z, members)
		c.writeElements(popped, true, c.peer.Resp3 && len(c.args) == 2)
	})
}
