package embedded

import (
	"cmp"
	"hash/maphash"
	"iter"
	"math"
	"sort"
	"strconv"

	"github.com/tidwall/btree"
)

// zset mirrors a sorted set of the engine, in order. Ranges of any kind are
// spans of ranks, found by binary search.
type zset struct {
	order  *btree.BTreeG[element]
	scores map[string]float64
	seed   maphash.Seed
	walk   *btree.BTreeG[step] // nil until the first ZSCAN
}

// element is a member and its score; elements are in the order of Redis.
type element struct {
	score  float64
	member string
}

func (e element) less(other element) bool {
	if e.score != other.score {
		return e.score < other.score
	}
	return e.member < other.member
}

// step is a member in the order in which ZSCAN walks: that of a hash, which
// no change of scores or of other members affects.
type step struct {
	hash   uint64 // 1 to 2^48, exact as a number in Lua
	member string
}

func (a step) less(b step) bool {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.member, b.member)) < 0
}

func newZset(seed maphash.Seed) *zset {
	return &zset{
		order:  btree.NewBTreeGOptions(element.less, btree.Options{NoLocks: true}),
		scores: map[string]float64{},
		seed:   seed,
	}
}

func (z *zset) len() int { return len(z.scores) }

func (z *zset) set(member string, score float64) {
	if old, ok := z.scores[member]; ok {
		z.order.Delete(element{old, member})
	} else if z.walk != nil {
		z.walk.Set(z.step(member))
	}
	z.scores[member] = score
	z.order.Set(element{score, member})
}

// remove reports whether member was there.
func (z *zset) remove(member string) bool {
	score, ok := z.scores[member]
	if !ok {
		return false
	}
	delete(z.scores, member)
	z.order.Delete(element{score, member})
	if z.walk != nil {
		z.walk.Delete(z.step(member))
	}
	return true
}

func (z *zset) rank(member string) (int, bool) {
	score, ok := z.scores[member]
	if !ok {
		return 0, false
	}
	me := element{score, member}
	return z.search(func(e element) bool { return !e.less(me) }), true
}

// search returns the lowest rank whose element is past a border.
func (z *zset) search(past func(element) bool) int {
	return sort.Search(z.len(), func(i int) bool {
		e, _ := z.order.GetAt(i)
		return past(e)
	})
}

// span is a range of ranks, from lo up to but without hi.
type span struct{ lo, hi int }

func (p span) len() int { return max(0, p.hi-p.lo) }

// ranks is the span of two ranks as Redis takes them: inclusive, and counted
// from the end if negative.
func (z *zset) ranks(first, last int64) span {
	n := int64(z.len())
	if first < 0 {
		first += n
	}
	if last < 0 {
		last += n
	}
	return span{int(min(max(first, 0), n)), int(min(max(last, -1), n-1) + 1)}
}

// flip is the same span counted from the other end.
func (z *zset) flip(p span) span { return span{z.len() - p.hi, z.len() - p.lo} }

// between is the span of elements that are neither below low nor above high.
func (z *zset) between(low, high bound) span {
	return span{z.search(low.reached), z.search(high.passed)}
}

// elements yields those of a span, the last one first if reverse is true.
func (z *zset) elements(p span, reverse bool) iter.Seq[element] {
	return func(yield func(element) bool) {
		if p.len() == 0 {
			return
		}
		left, walk, start := p.len(), z.order.Ascend, p.lo
		if reverse {
			walk, start = z.order.Descend, p.hi-1
		}
		pivot, _ := z.order.GetAt(start)
		walk(pivot, func(e element) bool {
			left--
			return yield(e) && left > 0
		})
	}
}

func (z *zset) step(member string) step {
	return step{maphash.String(z.seed, member)>>16 + 1, member}
}

// page returns at least count members from a cursor on, and the cursor of the
// next page, which is 0 at the end.
func (z *zset) page(cursor uint64, count int) (members []string, next uint64) {
	if z.walk == nil {
		z.walk = btree.NewBTreeGOptions(step.less, btree.Options{NoLocks: true})
		for member := range z.scores {
			z.walk.Set(z.step(member))
		}
	}
	var last uint64
	z.walk.Ascend(step{hash: cursor}, func(at step) bool {
		if len(members) >= count && at.hash != last {
			next = at.hash
			return false
		}
		members, last = append(members, at.member), at.hash
		return true
	})
	return members, next
}

// bound is an end of a range.
type bound struct {
	at      element
	byScore bool // else by member, which wants all scores to be equal
	open    bool // the bound itself is outside
	end     int  // -1: before, 1: behind all members; by member only
}

// order compares an element with the bound.
func (b bound) order(e element) int {
	switch {
	case b.byScore:
		return cmp.Compare(e.score, b.at.score)
	case b.end != 0:
		return -b.end
	}
	return cmp.Compare(e.member, b.at.member)
}

// reached reports whether e is not below b, taken as a lower bound.
func (b bound) reached(e element) bool {
	order := b.order(e)
	return order > 0 || order == 0 && !b.open
}

// passed reports whether e is above b, taken as an upper bound.
func (b bound) passed(e element) bool {
	order := b.order(e)
	return order > 0 || order == 0 && b.open
}

// parseScoreBound reads a bound such as "5", "(5" or "-inf".
func parseScoreBound(arg string) (bound, bool) {
	b := bound{byScore: true}
	if arg != "" && arg[0] == '(' {
		b.open, arg = true, arg[1:]
	}
	if arg == "" {
		return b, true // strtod takes nothing for 0, and Redis lets it
	}
	score, err := strconv.ParseFloat(arg, 64)
	if err != nil && !math.IsInf(score, 0) || math.IsNaN(score) {
		return b, false
	}
	b.at.score = score
	return b, true
}

// parseLexBound reads a bound such as "[a", "(a", "-" or "+".
func parseLexBound(arg string) (bound, bool) {
	switch {
	case arg == "-":
		return bound{end: -1}, true
	case arg == "+":
		return bound{end: 1}, true
	case arg != "" && (arg[0] == '(' || arg[0] == '['):
		return bound{at: element{member: arg[1:]}, open: arg[0] == '('}, true
	}
	return bound{}, false
}

// parseScore reads a score, which may be infinite but is a number. Zero loses
// its sign, as it does in Redis's small sets.
func parseScore(arg string) (float64, bool) {
	score, err := strconv.ParseFloat(arg, 64)
	return score + 0, err == nil && !math.IsNaN(score)
}

// formatScore is C's %.17g.
func formatScore(score float64) string {
	if math.IsInf(score, 0) {
		return map[bool]string{true: "inf", false: "-inf"}[score > 0]
	}
	return strconv.FormatFloat(score, 'g', 17, 64)
}
