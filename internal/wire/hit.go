package wire

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// How long the answer of a call is kept for its repetition.
const (
	// KeepToken is for a connection that retries by itself after a lost reply.
	KeepToken = 30 * time.Second
	// KeepRequest is for callers with a request id of their own.
	KeepRequest = time.Hour
)

// MaxHits is how many hits one call may count, and MaxTouch how many counters one
// may look at.
const (
	MaxHits  = 500
	MaxTouch = 100
)

// Hit is one hit of a counter. It must have been checked.
type Hit struct {
	ID   string
	By   int64  // at least 1
	Item string // a JSON text, or empty for none
}

// Counted says whether a hit was counted.
type Counted string

// The outcomes; the letters are hit.lua's.
const (
	CountedIt     Counted = ""
	NoDefinition  Counted = "N"
	NotInteger    Counted = "W"
	WouldOverflow Counted = "O"
	PendingJob    Counted = "J" // the id is one's
	TooManyItems  Counted = "I"
	TooManyBytes  Counted = "B" // of items
)

// HitResult is what came of a hit. What follows Outcome is zero if it was refused.
type HitResult struct {
	Outcome   Counted
	Count     int64     // hits of the window, this one included
	Threshold int64     // how many fire it
	Fired     bool      // this hit crossed the threshold
	Ends      time.Time // the window's end; the time that it would have had if it fired
}

// Token marks a call of Hit, so that its repetition is known.
type Token struct {
	text string
	keep time.Duration
}

// NewToken is a token that no other call has.
func NewToken() Token { return CallToken(rand.Int64()) }

// CallToken is that of a call by a number that no other one has.
func CallToken(number int64) Token {
	return Token{"t" + strconv.FormatUint(uint64(number), 36), KeepToken}
}

// RequestToken is the token of a caller's own request id, for hits of one counter.
func RequestToken(request, id string) Token { return Token{"r" + request + "\x00" + id, KeepRequest} }

// next is the token of what is left of a call when one script was not enough: it
// follows from the first one's, so that all of a repeated call is known.
func (t Token) next() Token { return Token{"+" + t.text, t.keep} }

// newRunID is a run id for who is no node.
func newRunID() string { return "h" + strconv.FormatUint(rand.Uint64(), 36) }

// Hit counts at most MaxHits hits, and answers in their order: in one step, unless
// so many of them open windows or fire that the rest goes into another. A repeated
// call with the same token counts nothing and answers the same.
func (s *Store) Hit(ctx context.Context, token Token, hits []Hit) ([]HitResult, error) {
	results := make([]HitResult, 0, len(hits))
	for len(results) < len(hits) {
		some, err := s.hitSome(ctx, token, hits[len(results):])
		if err != nil {
			return results, err
		}
		results, token = append(results, some...), token.next()
	}
	return results, nil
}

// hitSome counts the first of some hits, one at least.
func (s *Store) hitSome(ctx context.Context, token Token, hits []Hit) ([]HitResult, error) {
	args := make([]any, 0, 5+3*len(hits))
	args = append(args, s.Wake(s.db), newRunID(), token.text, token.keep.Milliseconds())
	args = appendHits(args, hits)
	reply, err := s.run(ctx, s.hit, args...)
	if err != nil {
		return nil, err
	}
	return parseHits(asString(reply[0]), len(hits))
}

// appendHits writes hits as hit.lua reads them, in the shortest of its forms.
func appendHits(args []any, hits []Hit) []any {
	plain, runs := true, 0
	for i := range hits {
		plain = plain && hits[i].By == 1 && hits[i].Item == ""
		if i == 0 || hits[i].ID != hits[i-1].ID {
			runs++
		}
	}
	switch {
	case !plain:
		args = append(args, "full")
		for i := range hits {
			args = append(args, hits[i].ID, hits[i].By, hits[i].Item)
		}
	case runs > len(hits)/2:
		args = append(args, "ids")
		for i := range hits {
			args = append(args, hits[i].ID)
		}
	default:
		args = append(args, "runs")
		for i, n := 0, 1; i < len(hits); i, n = i+n, 1 {
			for i+n < len(hits) && hits[i+n].ID == hits[i].ID {
				n++
			}
			args = append(args, hits[i].ID, n)
		}
	}
	return args
}

// Touch looks at what other clients have counted: it opens and ends windows,
// fires what has crossed its threshold, and gives counters the TTL that they
// lack. It takes at most MaxTouch ids, and says whether one of them has crossed
// its threshold now.
func (s *Store) Touch(ctx context.Context, ids []string) (fired bool, err error) {
	for len(ids) > 0 {
		args := make([]any, 0, 5+3*len(ids))
		args = append(args, s.Wake(s.db), newRunID(), "", 0, "full")
		for _, id := range ids {
			args = append(args, id, 0, "")
		}
		reply, err := s.run(ctx, s.hit, args...)
		if err != nil {
			return fired, err
		}
		text := asString(reply[0])
		fired = fired || strings.Contains(text, "!")
		ids = ids[min(len(ids), 1+strings.Count(text, " ")):]
	}
	return fired, nil
}

// parseHits reads the answer of hit.lua: `count/need!@ends …`, where need and ends
// are those of the hit before unless given, and `+n` for n more that count on by 1.
// It may answer only the first of n hits.
func parseHits(text string, n int) ([]HitResult, error) {
	bad := func() error { return fmt.Errorf("the answer to %d hits can't be read: it begins %.60q", n, text) }
	results := make([]HitResult, 0, n)
	var last HitResult
	var err error
	for part := range strings.SplitSeq(text, " ") {
		if len(part) == 1 && strings.Contains("NWOJIB", part) {
			results = append(results, HitResult{Outcome: Counted(part)})
			continue
		}
		if more, on := strings.CutPrefix(part, "+"); on {
			k, err := strconv.Atoi(more)
			if err != nil || k < 1 || k > n-len(results) || len(results) == 0 {
				return nil, bad()
			}
			for last.Fired = false; k > 0; k-- {
				last.Count++
				results = append(results, last)
			}
			continue
		}
		part, ends, hasEnds := strings.Cut(part, "@")
		part, last.Fired = strings.CutSuffix(part, "!")
		part, need, hasNeed := strings.Cut(part, "/")
		if last.Count, err = strconv.ParseInt(part, 10, 64); err != nil {
			return nil, bad()
		}
		if hasNeed {
			if last.Threshold, err = strconv.ParseInt(need, 10, 64); err != nil {
				return nil, bad()
			}
		}
		if hasEnds {
			ms, err := strconv.ParseInt(ends, 10, 64)
			if err != nil {
				return nil, bad()
			}
			last.Ends = msTime(ms)
		}
		results = append(results, last)
	}
	if len(results) == 0 || len(results) > n {
		return nil, bad()
	}
	return results, nil
}

// Window is an open window.
type Window struct {
	Start, End time.Time
	Count      int64 // hits so far
	Threshold  int64 // how many fire it
	Items      int   // collected
	Fired      bool  // it has fired, in mode once, and lasts until its end
	Definition string
}

// parseWindow reads the record of a window, see window.lua. counter is the value
// of its counter or, if it has none, what was last seen.
func parseWindow(record, counter string) (*Window, error) {
	bad := func() error { return fmt.Errorf("the record of a window can't be read: it begins %.60q", record) }
	f := strings.SplitN(record, " ", 9)
	if len(f) != 9 {
		return nil, bad()
	}
	var n [6]int64
	for i := range n {
		if i == 2 {
			continue
		}
		var err error
		if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil {
			return nil, bad()
		}
	}
	w := &Window{
		End: msTime(n[0]), Start: msTime(n[1]), Threshold: n[4], Items: int(n[5]),
		Fired: f[2] == "fired", Definition: f[8],
	}
	if v, err := strconv.ParseInt(counter, 10, 64); err == nil { // else somebody has put other data there
		w.Count = v
	}
	return w, nil
}

// readWindow is parseWindow for who shows windows: one that can't be read is none,
// as it is to the scripts.
func readWindow(record, counter string) *Window {
	w, err := parseWindow(record, counter)
	if err != nil {
		return nil
	}
	return w
}

// Windows are the open windows of some counters, in their order; nil where there
// is none.
func (s *Store) Windows(ctx context.Context, ids []string) ([]*Window, error) {
	windows := make([]*Window, len(ids))
	if len(ids) == 0 {
		return windows, nil
	}
	fuses := make([]string, len(ids))
	for i, id := range ids {
		fuses[i] = s.Fuse(id)
	}
	var records, counters *redis.SliceCmd
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		records = p.HMGet(ctx, s.Of("windows"), ids...)
		counters = p.MGet(ctx, fuses...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, record := range records.Val() {
		if text, ok := record.(string); ok {
			windows[i] = readWindow(text, asString(counters.Val()[i]))
		}
	}
	return windows, nil
}
