package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestAReleaseRefusesNewerAndOlderFormats(t *testing.T) {
	for _, c := range []struct {
		found string
		reads int
		want  string // in the error; empty: it may work
	}{
		{"", 1, ""},
		{"1", 1, ""},
		{"2", 1, "upgrade Keyfuse here"},
		{"1", 2, "work them off with the release that wrote them"},
		{"0", 1, "somebody has written over"},
		{"-1", 1, "somebody has written over"},
		{"1 ", 1, "somebody has written over"},
		{"\x00\n", 1, `"\x00\n"`},
	} {
		switch err := judgeFormat(c.found, c.reads); {
		case c.want == "" && err != nil:
			t.Errorf("%q, reading %d: %v", c.found, c.reads, err)
		case c.want != "" && (!errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q, reading %d: %v, want %q", c.found, c.reads, err, c.want)
		}
	}
}
