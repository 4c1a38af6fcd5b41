package config

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones are needed whatever the machine has
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestATimeHasAnOffsetOrIsOnTheLocalClocks(t *testing.T) {
	for _, tc := range []struct{ zone, in, want string }{
		{"Asia/Shanghai", "2026-12-01T09:00:00Z", "2026-12-01T09:00:00Z"},
		{"Asia/Shanghai", "2026-12-01T09:00:00.25+02:00", "2026-12-01T07:00:00.25Z"},
		{"Asia/Shanghai", "2026-12-01 09:00", "2026-12-01T01:00:00Z"},
		{"Asia/Shanghai", "2026-12-01 09:00:30", "2026-12-01T01:00:30Z"},
		{"UTC", "2026-12-01 09:00", "2026-12-01T09:00:00Z"},
		{"Europe/Berlin", "2026-03-29 01:59:59", "2026-03-29T00:59:59Z"},
		{"Europe/Berlin", "2026-03-29 03:00", "2026-03-29T01:00:00Z"},
		{"Europe/Berlin", "2026-10-25 01:59", "2026-10-24T23:59:00Z"},
		{"Europe/Berlin", "2026-10-25 03:00", "2026-10-25T02:00:00Z"},
		{"Asia/Kathmandu", "2026-06-01 00:00", "2026-05-31T18:15:00Z"},
	} {
		got, err := ParseTime(tc.in, zone(t, tc.zone))
		if err != nil || got.UTC().Format(time.RFC3339Nano) != tc.want {
			t.Errorf("%s in %s: got %s, %v, want %s", tc.in, tc.zone, got.UTC(), err, tc.want)
		}
	}
}

func TestATimeThatTheClocksShowTwiceIsTheFirst(t *testing.T) {
	for _, tc := range []struct{ zone, in, want string }{
		{"Europe/Berlin", "2026-10-25 02:00", "2026-10-25T00:00:00Z"},
		{"Europe/Berlin", "2026-10-25 02:59:59", "2026-10-25T00:59:59Z"},
		{"America/New_York", "2026-11-01 01:30", "2026-11-01T05:30:00Z"},
		{"Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04T14:45:00Z"}, // half an hour
	} {
		got, err := ParseTime(tc.in, zone(t, tc.zone))
		if err != nil || got.UTC().Format(time.RFC3339) != tc.want {
			t.Errorf("%s in %s: got %s, %v, want %s", tc.in, tc.zone, got.UTC(), err, tc.want)
		}
	}
}

func TestATimeThatTheClocksSkipIsAsMuchLaterAsTheyAreSet(t *testing.T) {
	for _, tc := range []struct{ zone, in, want string }{
		{"Europe/Berlin", "2026-03-29 02:00", "2026-03-29 03:00:00"},
		{"Europe/Berlin", "2026-03-29 02:59:59", "2026-03-29 03:59:59"},
		{"America/New_York", "2026-03-08 02:30", "2026-03-08 03:30:00"},
		{"Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-04 02:45:00"},
		{"Pacific/Apia", "2011-12-30 12:00", "2011-12-31 12:00:00"}, // a day that never was
	} {
		got, err := ParseTime(tc.in, zone(t, tc.zone))
		if err != nil || got.Format(time.DateTime) != tc.want {
			t.Errorf("%s in %s: got %s, %v, want %s", tc.in, tc.zone, got, err, tc.want)
		}
	}
}

func TestWhatIsNoTimeIsToldBothForms(t *testing.T) {
	for _, in := range []string{
		"", "tomorrow", "2026-12-01", "09:00", "2026-12-01T09:00", "2026-13-01 09:00", "2026-02-30T00:00:00Z",
		"2026-12-01 25:00", "2026-12-01 09:00 ", "1764579600", "\x00\n", strings.Repeat("9", 1000),
	} {
		got, err := ParseTime(in, time.UTC)
		if err == nil {
			t.Errorf("%q: got %s, want an error", in, got)
			continue
		}
		want := quote(in) + " is not a time: write 2026-12-01T09:00:00Z, or 2026-12-01 09:00 for a time on the local clocks"
		if err.Error() != want {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{"2026-12-01T09:00:00Z", "2026-12-01 09:00", "2026-12-01 09:00:30", "2026-03-29 02:30", "0000-01-01 00:00", "x\n"} {
		f.Add(seed)
	}
	berlin := zone(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTime(s, berlin)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: an error of several lines: %v", s, err)
			}
			return
		}
		got = got.UTC()
		if got.Year() < 0 || got.Year() > 9999 {
			return // by its offset; RFC 3339 has no such years
		}
		again, err := ParseTime(got.Format(time.RFC3339Nano), berlin)
		if err != nil || !again.Equal(got) {
			t.Errorf("%q: got %s, and %s, %v from that", s, got, again, err)
		}
	})
}
