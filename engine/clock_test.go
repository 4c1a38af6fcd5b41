package engine

import (
	"testing"
	"time"
)

func TestASlowAnswerDoesNotSpoilTheClock(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	ms := time.Millisecond
	for name, c := range map[string]struct {
		answers [][3]time.Duration // asked, answered, and the server's time, since the start
		want    time.Duration      // of the server's clock, ahead of this one
	}{
		"the first answer is taken, however slow":      {[][3]time.Duration{{0, 100 * ms, 1050 * ms}}, 1000 * ms},
		"one that is as quick is taken":                {[][3]time.Duration{{0, 2 * ms, 1001 * ms}, {10 * ms, 12 * ms, 1012 * ms}}, 1001 * ms},
		"a slow one is not, if what is known fits":     {[][3]time.Duration{{0, 2 * ms, 1001 * ms}, {10 * ms, 510 * ms, 1012 * ms}}, 1000 * ms},
		"a slow one is, if the clock was set":          {[][3]time.Duration{{0, 2 * ms, 1001 * ms}, {10 * ms, 510 * ms, 9260 * ms}}, 9000 * ms},
		"a slow one is, if the last was very long ago": {[][3]time.Duration{{0, 2 * ms, 1001 * ms}, {time.Hour, time.Hour + 20*ms, time.Hour + 1011*ms}}, 1001 * ms},
		"a quicker one is, soon after":                 {[][3]time.Duration{{0, 100 * ms, 1090 * ms}, {100 * ms, 102 * ms, 1101 * ms}}, 1000 * ms},
		"one that was set back by more than it can be": {[][3]time.Duration{{0, 2 * ms, 1001 * ms}, {10 * ms, 14 * ms, 1007 * ms}}, 995 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			var clock clock
			for _, a := range c.answers {
				clock.note(start.Add(a[0]), start.Add(a[1]), start.Add(a[2]))
			}
			if got := clock.skew(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
