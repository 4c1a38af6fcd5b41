package wire

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
)

// OnTimeout says what the end of a window does.
type OnTimeout string

// The choices.
const (
	TimeoutFires OnTimeout = "fire"
	TimeoutDrops OnTimeout = "drop"
)

// Mode says what comes after a firing.
type Mode string

// The modes.
const (
	Repeat Mode = "repeat" // the next hit opens a new window
	Once   Mode = "once"   // nothing, until the window ends
)

// Bounds of thresholds.
const (
	MaxCount        = 1<<53 - 1 // beyond it Lua can't count
	MaxItems        = 10_000
	MaxPatterns     = 256 // each is compared with each id that has no window yet
	MaxItemBytes    = 1 << 20
	DefaultMaxItems = 1000
	DefaultMaxBytes = 256 << 10
)

// Threshold is a definition: so many hits within a window fire the task, or else
// the window's end does.
type Threshold struct {
	// ID is the counter's key, or a pattern with one *, which stands for any
	// bytes: then each key that matches is a counter of its own.
	ID      string
	Task    string
	Payload []byte

	Count     int64         // hits that fire it, 1 to MaxCount
	Within    time.Duration // from the first hit to the window's end
	OnTimeout OnTimeout     // empty: TimeoutFires
	Mode      Mode          // empty: Repeat

	// Debounce, unless zero, is how long after the last hit a window ends, but
	// no later than MaxWait after the first one. MaxWait zero means Within.
	Debounce, MaxWait time.Duration

	MaxItems int // that a window collects; zero: DefaultMaxItems
	MaxBytes int // of them, as JSON with a comma each; zero: DefaultMaxBytes
}

// ErrBadThreshold is wrapped by what Complete returns.
var ErrBadThreshold = errors.New("bad threshold")

// Complete fills in the defaults, and says what is wrong with a definition.
// longest is the longest window that is allowed.
func (t Threshold) Complete(longest time.Duration) (Threshold, error) {
	if t.OnTimeout == "" {
		t.OnTimeout = TimeoutFires
	}
	if t.Mode == "" {
		t.Mode = Repeat
	}
	if t.MaxWait == 0 && t.Debounce != 0 {
		t.MaxWait = t.Within
	}
	if t.MaxItems == 0 {
		t.MaxItems = DefaultMaxItems
	}
	if t.MaxBytes == 0 {
		t.MaxBytes = DefaultMaxBytes
	}
	return t, t.check(longest)
}

func (t Threshold) check(longest time.Duration) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w", ErrBadThreshold, fmt.Errorf(format, args...))
	}
	if err := CheckID(t.ID); err != nil {
		return bad("%w", err)
	}
	if err := CheckTask(t.Task); err != nil {
		return bad("%w", err)
	}
	switch stars := strings.Count(t.ID, "*"); {
	case stars > 1:
		return bad("pattern %q has %d *: a pattern has one", t.ID, stars)
	case t.ID[0] == '*':
		return bad("pattern %q begins with *, and so would count every key: begin it with a prefix", t.ID)
	case IsPattern(t.ID) && matchesInternal(t.ID):
		return bad("pattern %q would match Keyfuse's own keys: put more text before the *", t.ID)
	case t.Count < 1:
		return bad("the count is %d, want at least 1", t.Count)
	case t.Count > MaxCount:
		return bad("the count is %d, want at most %d", t.Count, int64(MaxCount))
	case t.Within < time.Millisecond:
		return bad("the window is %s long, want at least 1ms", t.Within)
	case t.Within > longest:
		return bad("the window is longer than %s", longest)
	case t.OnTimeout != TimeoutFires && t.OnTimeout != TimeoutDrops:
		return bad("what the window's end does is %q, want fire or drop", t.OnTimeout)
	case t.Mode != Repeat && t.Mode != Once:
		return bad("the mode is %q, want repeat or once", t.Mode)
	case t.MaxItems < 0 || t.MaxItems > MaxItems:
		return bad("%d items, want 1 to %d", t.MaxItems, MaxItems)
	case t.MaxBytes < 0 || t.MaxBytes > MaxItemBytes:
		return bad("%d bytes of items, want 1 to %d", t.MaxBytes, MaxItemBytes)
	}
	switch {
	case t.Debounce < 0 || t.Debounce > 0 && t.Debounce < time.Millisecond:
		return bad("the debounce is %s, want at least 1ms", t.Debounce)
	case t.Debounce == 0 && t.MaxWait != 0:
		return bad("the longest wait goes only with a debounce")
	case t.MaxWait < t.Debounce:
		return bad("the longest wait of %s is shorter than the debounce of %s", t.MaxWait, t.Debounce)
	case t.MaxWait > longest:
		return bad("the longest wait is longer than %s", longest)
	}
	return nil
}

// IsPattern says whether a definition's id is a pattern.
func IsPattern(id string) bool { return strings.Contains(id, "*") }

// matchesInternal says whether a pattern could match keys that are no counters.
func matchesInternal(pattern string) bool {
	head, _, _ := strings.Cut(pattern, "*")
	return strings.HasPrefix("class:", head) || strings.HasPrefix("keyfuse:", head)
}

// text is the definition as define.lua keeps it: see window.lua.
func (t Threshold) text() string {
	return fmt.Sprintf("%d %d %s %s %d %d %d %d %s", t.Count, ceilMS(t.Within), t.OnTimeout, t.Mode,
		ceilMS(t.Debounce), ceilMS(t.MaxWait), t.MaxItems, t.MaxBytes, t.Task)
}

// payloadText is the payload as define.lua keeps it: see window.lua.
func (t Threshold) payloadText() string {
	if len(t.Payload) == 0 {
		return ""
	}
	member := payloadMember(t.Payload)
	return strconv.Itoa(len(member)) + " " + member + string(t.Payload)
}

// payloadMember is a payload as a member of a JSON object, behind others.
func payloadMember(payload []byte) string {
	switch {
	case len(payload) == 0:
		return ""
	case !utf8.Valid(payload):
		return `,"payload_base64":"` + base64.StdEncoding.EncodeToString(payload) + `"`
	}
	return `,"payload":` + JSONString(string(payload))
}

// JSONString is text as a JSON string, as an item of a hit is.
func JSONString(text string) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can always be encoded, and a Builder written
	return strings.TrimSuffix(out.String(), "\n")
}

// ErrBadDefinition is wrapped by errors about a definition in Redis that can't be read.
var ErrBadDefinition = errors.New("the definition of a threshold can't be read")

// parseThreshold reads what text and payloadText made.
func parseThreshold(id, text, payload string) (Threshold, error) {
	bad := func() (Threshold, error) {
		return Threshold{}, fmt.Errorf("%w: %q begins %.60q", ErrBadDefinition, id, text)
	}
	f := strings.Split(text, " ")
	if len(f) != 9 || CheckTask(f[8]) != nil {
		return bad()
	}
	var n [8]int64
	for i := range n {
		if i == 2 || i == 3 {
			continue
		}
		v, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil || v < 0 {
			return bad()
		}
		n[i] = v
	}
	const longest = int64(math.MaxInt64 / time.Millisecond)
	if max(n[1], n[4], n[5]) > longest {
		return bad()
	}
	ms := func(v int64) time.Duration { return time.Duration(v) * time.Millisecond }
	t := Threshold{
		ID: id, Task: f[8], Count: n[0], Within: ms(n[1]),
		OnTimeout: OnTimeout(f[2]), Mode: Mode(f[3]), Debounce: ms(n[4]), MaxWait: ms(n[5]),
		MaxItems: int(n[6]), MaxBytes: int(n[7]),
	}
	if length, rest, ok := strings.Cut(payload, " "); ok {
		if n, err := strconv.Atoi(length); err == nil && n >= 0 && n <= len(rest) {
			t.Payload = []byte(rest[n:])
		}
	}
	return t, nil
}

// Defined is what became of a definition.
type Defined int

// The outcomes; the numbers are define.lua's.
const (
	DefinedNew Defined = iota
	DefinedReplaced
	DefinedSame
	RefusedEqual // another pattern would match some ids equally
	RefusedMany  // there are MaxPatterns already
)

// Define defines a threshold, which must be complete. other is the pattern that
// was in the way if it was refused.
func (s *Store) Define(ctx context.Context, t Threshold) (outcome Defined, other string, err error) {
	reply, err := s.run(ctx, s.define, t.ID, t.text(), t.payloadText(), s.Wake(s.db), MaxPatterns)
	if err == nil {
		err = need(reply, 2)
	}
	if err != nil {
		return 0, "", err
	}
	return Defined(asInt(reply[0])), asString(reply[1]), nil
}

// Undefine removes a definition, and says whether it was there.
func (s *Store) Undefine(ctx context.Context, id string) (bool, error) {
	reply, err := s.run(ctx, s.undefine, id, s.Wake(s.db))
	if err != nil {
		return false, err
	}
	return asInt(reply[0]) == 1, nil
}

// DefinedVersion is a number that rises whenever thresholds are defined or
// removed; a heartbeat answers it too.
func (s *Store) DefinedVersion(ctx context.Context) (int64, error) {
	version, err := s.rdb.Get(ctx, s.Of("defined")).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return version, err
}

// ThresholdIDs are the ids and patterns that have a definition.
func (s *Store) ThresholdIDs(ctx context.Context) ([]string, error) {
	return s.rdb.HKeys(ctx, s.Of("thresholds")).Result()
}

// Thresholds are all definitions, in the order of their ids. One that can't be
// read is an error behind the others.
func (s *Store) Thresholds(ctx context.Context) ([]Threshold, error) {
	var defs, loads *redis.MapStringStringCmd
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		defs, loads = p.HGetAll(ctx, s.Of("thresholds")), p.HGetAll(ctx, s.Of("payloads"))
		return nil
	})
	if err != nil {
		return nil, err
	}
	texts, payloads := defs.Val(), loads.Val()
	var all []Threshold
	var bad []error
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		t, err := parseThreshold(id, texts[id], payloads[id])
		if err != nil {
			bad = append(bad, err)
			continue
		}
		all = append(all, t)
	}
	return all, errors.Join(bad...)
}

// Threshold is one definition, nil if there is none of that id or pattern.
func (s *Store) Threshold(ctx context.Context, id string) (*Threshold, error) {
	var def, load *redis.StringCmd
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		def, load = p.HGet(ctx, s.Of("thresholds"), id), p.HGet(ctx, s.Of("payloads"), id)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	if errors.Is(def.Err(), redis.Nil) {
		return nil, nil //nolint:nilnil // that there is none is no error
	}
	t, err := parseThreshold(id, def.Val(), load.Val())
	return &t, err
}
