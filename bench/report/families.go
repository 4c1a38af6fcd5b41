package report

import (
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// A family is the forms of one way that a target speaks of together: all whose names
// begin with its prefix.
type family struct{ prefix, label string }

// The families that targets speak of. A prefix that no way has makes each target that
// needs it "not measured", and says so.
var (
	keyfuse = family{"keyfuse", "Keyfuse"}
	asynq   = family{"asynq", "asynq"}
	events  = family{"bare events", "bare events"}
	polling = family{"postgres", "database polling"}
	heap    = family{"heap", "the in-process heap"}
	scripts = family{"scripts", "the bare scripts"}
)

// unknown is the store of a way that the results name no store of.
const unknown = "unknown"

func (f family) has(w result.Way) bool { return strings.HasPrefix(w.Name, f.prefix) }

// floor says that it is no way to run delayed tasks, but what one is measured against.
func floor(w result.Way) bool { return scripts.has(w) }

// forms are the ways of a family.
func (m *measured) forms(f family) []result.Way {
	var forms []result.Way
	for _, w := range m.ways {
		if f.has(w) {
			forms = append(forms, w)
		}
	}
	return forms
}

// best is the form of a family with the best median; ok is false if no form has one.
func (m *measured) best(f family, figure string, size int) (way string, c cell, ok bool) {
	for _, w := range m.ranked(figure, size) {
		if f.has(w) {
			return w.Name, m.at(w.Name, figure, size), true
		}
	}
	return "", cell{}, false
}

// outlives says that a way's jobs outlive the process that schedules or runs them.
func outlives(w result.Way) bool { return w.Store != "" && w.Store != unknown && !floor(w) }
