package faults

import (
	"fmt"
	"strings"
	"time"
)

// String is all that is known of a job, on lines of their own.
func (j *job) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %q", j.kind, j.id)
	for i, s := range j.steps {
		fmt.Fprintf(&text, "\n    step %d: %s", i, s)
	}
	writeStarts(&text, j.starts)
	return text.String()
}

func (s step) String() string {
	name := [...]string{"arm", "bare", "fuse", "move", "cancel"}[s.op]
	if s.replace {
		name = "replace"
	}
	answer := [...]string{"no answer", "done", "replaced", "kept", "running", "gone"}[s.answer]
	text := fmt.Sprintf("%s, sent %s, %s", name, clock(s.sent), answer)
	if s.acked != 0 {
		text += " " + clock(s.acked)
	}
	return fmt.Sprintf("%s; due %s, not before %s", text, clock(s.due), clock(s.floor))
}

func (c *counter) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "counter %q", c.id)
	writeStarts(&text, c.starts[max(0, len(c.starts)-20):])
	return text.String()
}

func writeStarts(text *strings.Builder, starts []*start) {
	for _, s := range starts {
		fmt.Fprintf(text, "\n    %s started %s: run %s attempt %d, step %d, %s, count %d, due %s; ended %s %q; settled %q",
			s.proc.name, clock(s.at), s.run, s.attempt, s.serial, s.reason, s.count, clock(s.due), clock(s.ended), s.end, s.settled)
		if s.proc.gone != 0 {
			fmt.Fprintf(text, "; %s was %s %s", s.proc.name, s.proc.how, clock(s.proc.gone))
		}
	}
}

// clock is a time as people read it, to the microsecond.
func clock(ns int64) string {
	if ns == 0 {
		return "never"
	}
	return time.Unix(0, ns).UTC().Format("15:04:05.000000")
}
