package tasks

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

func TestRetryAfterReadsSecondsAndDates(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		value, date string
		want        time.Duration // zero: not asked for
	}{
		{"120", "", 2 * time.Minute},
		{" 7 ", "", 7 * time.Second},
		{"86400", "", maxRetryAfter},
		{"86401", "", maxRetryAfter},
		{"99999999999999999999999999", "", maxRetryAfter},
		{"Tue, 01 Dec 2026 09:00:30 GMT", "", 30 * time.Second},
		{"Tuesday, 01-Dec-26 09:00:30 GMT", "", 30 * time.Second},
		{"Tue, 01 Dec 2026 09:00:30 GMT", "Tue, 01 Dec 2026 09:00:20 GMT", 10 * time.Second},
		{"Tue, 01 Dec 2026 09:00:30 GMT", "garbage", 30 * time.Second},
		{"Wed, 01 Dec 2027 09:00:00 GMT", "", maxRetryAfter},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "", maxRetryAfter},
		{"Tue, 01 Dec 2026 08:59:59 GMT", "", 0},
		{"0", "", 0},
		{"-5", "", 0},
		{"+5", "", 0},
		{"1.5", "", 0},
		{"5s", "", 0},
		{"٣", "", 0},
		{"soon", "", 0},
		{"", "", 0},
	} {
		header := http.Header{"Retry-After": {c.value}, "Date": {c.date}}
		got, ok := retryAfter(header, now)
		if ok != (c.want > 0) || ok && got != c.want {
			t.Errorf("%q, date %q: %s, %t; want %s", c.value, c.date, got, ok, c.want)
		}
	}
}

func FuzzRetryAfterStaysWithinADay(f *testing.F) {
	for _, value := range []string{"1", "0", "-1", "99999999999999999999", "Tue, 01 Dec 2026 09:00:30 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "x"} {
		f.Add(value, "Tue, 01 Dec 2026 09:00:00 GMT")
	}
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		got, ok := retryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, now)
		if ok && (got <= 0 || got > maxRetryAfter) {
			t.Errorf("%q: %s", value, got)
		}
		if n, err := strconv.ParseUint(value, 10, 32); err == nil && n > 0 && value[0] != '+' && !ok {
			t.Errorf("%q seconds are not honoured", value)
		}
	})
}
