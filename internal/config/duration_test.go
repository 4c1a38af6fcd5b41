package config

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestADurationIsNumbersWithUnits(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"0s": 0, "1500ms": 1500 * time.Millisecond, "90s": 90 * time.Second, "30m": 30 * time.Minute,
		"1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "2w": 14 * 24 * time.Hour,
		"720h": 30 * 24 * time.Hour, "1w2d3h4m5s6ms": 9*24*time.Hour + 3*time.Hour + 4*time.Minute + 5*time.Second + 6*time.Millisecond,
		"0.1s": 100 * time.Millisecond, "0.001s": time.Millisecond, "0.1w": 16*time.Hour + 48*time.Minute,
		"3650d": MaxDuration, "3649d24h": MaxDuration, "00000000000000000000000005s": 5 * time.Second,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestWhatIsNoDurationIsToldWhatToWrite(t *testing.T) {
	const form = " is not a duration: write it like 90s, 30m, 1h30m or 7d"
	for in, want := range map[string]string{
		"":                       `""` + form,
		"soon":                   `"soon"` + form,
		"10 s":                   `"10 s"` + form,
		" 10s":                   `" 10s"` + form,
		"10s\n":                  `"10s\n"` + form,
		"1h-30m":                 `"1h-30m"` + form,
		"+5s":                    `"+5s"` + form,
		"-":                      `"-"` + form,
		".5h":                    `".5h"` + form,
		"5.h":                    `"5.h"` + form,
		"1.2.3s":                 `"1.2.3s"` + form,
		"1e3s":                   `"1e3s" has an unknown unit, e: want ms, s, m, h, d or w`,
		"NaN":                    `"NaN"` + form,
		"Infs":                   `"Infs"` + form,
		"٣s":                     `"٣s"` + form,
		"1800":                   `"1800" has no unit: write 1800s`,
		"0":                      `"0" has no unit: write 0s`,
		"1.5":                    `"1.5" has no unit: write 1.5s`,
		"1h30":                   `"1h30" ends without a unit: write 1h30m or 1h30s, say`,
		"1H":                     `"1H" has an unknown unit, H: want ms, s, m, h, d or w`,
		"1y":                     `"1y" has an unknown unit, y: want ms, s, m, h, d or w`,
		"5us":                    `"5us" has an unknown unit, us: want ms, s, m, h, d or w`,
		"-5s":                    `"-5s" is negative: want 0s or more`,
		"-0s":                    `"-0s" is negative: want 0s or more`,
		"-5":                     `"-5" is negative: want 0s or more`,
		"3651d":                  `"3651d" is longer than 10 years: want 3650d or less`,
		"3650d1ms":               `"3650d1ms" is longer than 10 years: want 3650d or less`,
		"3650.001d":              `"3650.001d" is longer than 10 years: want 3650d or less`,
		"9223372036854775807w":   `"9223372036854775807w" is longer than 10 years: want 3650d or less`,
		"99999999999999999999s":  `"99999999999999999999s" is longer than 10 years: want 3650d or less`,
		strings.Repeat("1s", 31): `"` + strings.Repeat("1s", 30) + `"…` + form,
	} {
		if got, err := ParseDuration(in); err == nil || err.Error() != want {
			t.Errorf("%q: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestANegativeOrTooLongDurationIsToldApart(t *testing.T) {
	if _, err := ParseDuration("-5s"); !errors.Is(err, ErrNegative) {
		t.Errorf("got %v, want ErrNegative", err)
	}
	if _, err := ParseDuration("11000d"); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v, want ErrTooLong", err)
	}
}

func TestADurationIsShownForPeople(t *testing.T) {
	for want, in := range map[string]time.Duration{
		"0s": 999 * time.Microsecond, "250ms": 250 * time.Millisecond, "1.5s": 1500 * time.Millisecond,
		"58.312s": 58312*time.Millisecond + 999, "1m": time.Minute + 999*time.Millisecond,
		"29m58s": 29*time.Minute + 58312*time.Millisecond, "1h30m": 90 * time.Minute, "1h5s": time.Hour + 5*time.Second,
		"7d": 7 * 24 * time.Hour, "3650d": MaxDuration, "-5s": -5 * time.Second, "-1h5m": -65 * time.Minute,
		"106751d23h47m16s": math.MaxInt64, "-106751d23h47m16s": math.MinInt64,
	} {
		if got := FormatDuration(in); got != want {
			t.Errorf("%d: got %s, want %s", in, got, want)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"1500ms", "1h30m", "1.5h", "7d", "1800", "-5s", "NaN", "99999999999999999999w", "0.99999999999999999999s", "3650d", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			if d != 0 || strings.Contains(err.Error(), "\n") || len(err.Error()) > 8*maxQuoted {
				t.Errorf("%q: got %s, %v", s, d, err)
			}
			return
		}
		if d < 0 || d > MaxDuration {
			t.Errorf("%q: got %s", s, d)
		}
	})
}

func FuzzWhatFormatDurationWritesParseDurationReads(f *testing.F) {
	for _, seed := range []int64{0, 1, 999_999, 1_500_000_000, 59_999_999_999, 60_000_000_000, int64(MaxDuration)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		if n < 0 || n > int64(MaxDuration) {
			return
		}
		d := time.Duration(n)
		want := d.Truncate(time.Second)
		if d < time.Minute {
			want = d.Truncate(time.Millisecond)
		}
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got != want {
			t.Errorf("%d is written %s and read %s, %v, want %s", n, FormatDuration(d), got, err, want)
		}
	})
}
