package config

import (
	"errors"
	"strings"
	"time"
)

const (
	maxCount = 1<<53 - 1 // Lua and JSON hold no larger whole number exactly
	maxItems = 10_000
)

// threshold reads the section of that name. It needs engine to be read.
func (v value) threshold() *Threshold {
	most, name := int64(mebibyte), "1MiB"
	if limit := v.d.cfg.Engine.MaxPayload; limit < most {
		most, name = limit, "engine.max_payload"
	}
	t := Threshold{OnTimeout: "fire", Mode: "repeat", MaxItems: 1000, MaxBytes: min(256*kibibyte, most)}
	given, clean := v.section(fields{
		"count":      whole(&t.Count, 1, maxCount),
		"within":     duration(&t.Within, time.Millisecond),
		"on_timeout": oneOf(&t.OnTimeout, "fire", "drop"),
		"mode":       oneOf(&t.Mode, "repeat", "once"),
		"debounce":   duration(&t.Debounce, time.Millisecond),
		"max_wait":   duration(&t.MaxWait, time.Millisecond),
		"max_items":  whole(&t.MaxItems, 1, maxItems),
		"max_bytes":  size(&t.MaxBytes, most, name),
	})
	v.needs(given, "count", "within")
	if clean {
		t.checkWaits(given)
	}
	return &t
}

// checkWaits looks at whether hits can put the end of a window off as far as
// debounce says. A duration that could not be read is zero, and passed over.
func (t Threshold) checkWaits(given map[string]value) {
	debounce, debounces := given["debounce"]
	wait, waits := given["max_wait"]
	switch {
	case waits && !debounces:
		wait.fail("goes only with debounce: remove it")
	case waits && 0 < t.MaxWait && t.MaxWait < t.Debounce:
		wait.fail("is shorter than debounce: change one of them")
	case !waits && 0 < t.Within && t.Within < t.Debounce:
		debounce.fail("is longer than within: change one of them, or add max_wait")
	}
}

// checkPattern looks at the id of a threshold.
func checkPattern(s string) error {
	before, _, found := strings.Cut(s, "*")
	switch {
	case strings.Count(s, "*") > 1:
		return errors.New("holds more than one *, which stands for any bytes: keep one")
	case strings.HasPrefix(s, "*"):
		return errors.New("begins with *, so any id would match it: put text before the *")
	case found && (strings.HasPrefix("class:", before) || strings.HasPrefix("keyfuse:", before)):
		return errors.New("would match Keyfuse's own keys: put more text before the *")
	}
	return nil
}

// patterns are those of a file's thresholds, by the text before their *.
type patterns map[string][]pattern

// pattern is what follows the * of a threshold's id, and the threshold's line.
type pattern struct {
	after string
	line  int
}

// add takes in the id of t if it is a pattern. If one that was added before
// matches some ids as closely, add returns its line: of patterns that match an
// id, the one with the longest text before its * does so most closely.
func (p patterns) add(t Trigger, line int) (int, bool) {
	before, after, found := strings.Cut(t.ID, "*")
	if t.Threshold == nil || !found {
		return 0, false
	}
	for _, other := range p[before] {
		if strings.HasSuffix(after, other.after) || strings.HasSuffix(other.after, after) {
			return other.line, true
		}
	}
	p[before] = append(p[before], pattern{after, line})
	return 0, false
}
