package config

import (
	"fmt"
	"time"
)

// ParseTime reads a point in time: RFC 3339, as in 2026-12-01T09:00:00Z, or
// 2026-12-01 09:00 or 2026-12-01 09:00:30 on the clocks of loc. What those
// clocks show twice, when they are set back, means the first time; what they
// skip, when they are set forward, is as much later as they are set: 02:30 is
// 03:30 then.
func ParseTime(s string, loc *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02 15:04", time.DateTime} {
		if clock, err := time.Parse(layout, s); err == nil {
			return onClock(clock, loc), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not a time: write 2026-12-01T09:00:00Z, or 2026-12-01 09:00 for a time on the local clocks", quote(s))
}

// onClock returns when the clocks of loc show what clock shows in UTC. They
// are offset by what they were a day before or what they will be a day after,
// and these differ where they are set in between.
func onClock(clock time.Time, loc *time.Location) time.Time {
	before := clock.Add(-offset(clock.Add(-day), loc))
	after := clock.Add(-offset(clock.Add(day), loc))
	if shows(after, clock, loc) && !shows(before, clock, loc) {
		return after.In(loc)
	}
	return before.In(loc)
}

func offset(t time.Time, loc *time.Location) time.Duration {
	_, seconds := t.In(loc).Zone()
	return time.Duration(seconds) * time.Second
}

// shows reports whether the clocks of loc show at t what clock shows in UTC.
func shows(t, clock time.Time, loc *time.Location) bool {
	return t.Add(offset(t, loc)).Equal(clock)
}
