package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func FuzzTextOnATerminalHasNoControlCharacters(f *testing.F) {
	for _, s := range []string{"order:42", "\x1b[31m", "a\nb\r", "\xff\xfe", "\u202eabc", "日本", "\u009b31m", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, shown := range []string{view.Printable(s), oneLine(s), view.Clip(s, 10)} {
			if !utf8.ValidString(shown) || strings.ContainsFunc(shown, unicode.IsControl) || strings.ContainsRune(shown, '\u202e') {
				t.Errorf("%q is shown as %q", s, shown)
			}
		}
		if n := utf8.RuneCountInString(view.Clip(s, 10)); n > 11 {
			t.Errorf("%q is clipped to %d characters", s, n)
		}
	})
}

func TestALongLineIsCountedAndNotKept(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 1000)+"\nshort\nend"), 16)
	for _, want := range []struct {
		text string
		size int
	}{{"", 1001}, {"short\n", 6}, {"end", 3}} {
		text, size, _ := readLine(in, 100)
		if string(text) != want.text || size != want.size {
			t.Errorf("read %q of %d bytes, want %q of %d", text, size, want.text, want.size)
		}
	}
}

func TestTimesForPeopleSayHowFarAway(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "now", -500 * time.Millisecond: "now", 500 * time.Millisecond: "in less than 1s",
		1798 * time.Second: "in 29m58s", -3 * time.Hour: "3h ago", 720 * time.Hour: "in 30d",
	} {
		if got := distance(now.Add(d), now); got != want {
			t.Errorf("%s from now is %q, want %q", d, got, want)
		}
	}
}

func TestThresholdsForPeopleSayWhatFiresThem(t *testing.T) {
	const drop, once = client.TimeoutDrops, client.Once
	for want, def := range map[string]client.Threshold{
		"1 hit or 10m":                                    {Count: 1, Within: 10 * time.Minute},
		"5 hits within 1m0.5s":                            {Count: 5, Within: 60500 * time.Millisecond, OnTimeout: drop},
		"5 hits or 250ms, once a window":                  {Count: 5, Within: 250 * time.Millisecond, Mode: once},
		"5 hits or 5s without one, 1h at most":            {Count: 5, Within: time.Minute, Debounce: 5 * time.Second, MaxWait: time.Hour},
		"5 hits within 5s of each other, 1h in all":       {Count: 5, Within: time.Minute, Debounce: 5 * time.Second, MaxWait: time.Hour, OnTimeout: drop},
		"9007199254740991 hits within 30d, once a window": {Count: 1<<53 - 1, Within: 720 * time.Hour, OnTimeout: drop, Mode: once},
	} {
		if got := view.Rule(def); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEndpointsOfURLs(t *testing.T) {
	for raw, addr := range map[string]string{
		"embedded": embeddedAddr, "embedded://127.0.0.1:7000": "127.0.0.1:7000", "embedded://[::1]:7000": "[::1]:7000",
		"redis://h:1/2": "h:1", "rediss://h": "h:6379", "unix:///run/redis.sock": "/run/redis.sock",
	} {
		end, err := endpointOf(config.Redis{URL: raw})
		if err != nil || end.opts.Addr != addr || (end.kind == kindEmbedded) != strings.HasPrefix(raw, "embedded") {
			t.Errorf("%s: %+v, %v", raw, end, err)
		}
	}
	for _, raw := range []string{"embedded://", "embedded://0.0.0.0:1", "embedded://example.com:1", "redis://u:secret@h:1/?nonsense=1", "redis://u:se%cret@h"} {
		if _, err := endpointOf(config.Redis{URL: raw}); err == nil || strings.Contains(err.Error(), "cret@") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestARunWhoseStartIsUnknownIsShownWithoutOne(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	now := time.Now()
	if err := a.printJob(client.Job{ID: "a", Task: "t", State: client.Running, Due: now, Node: "n"}, now); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "running") || strings.Contains(text, "started") {
		t.Errorf("got %s", text)
	}
}
