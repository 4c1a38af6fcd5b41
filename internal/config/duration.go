package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxDuration is the longest duration that ParseDuration reads: 10 years of
// 365 days.
const MaxDuration = 3650 * day

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// ErrNegative is wrapped by the error for a duration below zero.
var ErrNegative = errors.New("is negative: want 0s or more")

// ErrTooLong is wrapped by the error for a duration above MaxDuration.
var ErrTooLong = errors.New("is longer than 10 years: want 3650d or less")

var errNoDuration = errors.New("is not a duration: write it like 90s, 30m, 1h30m or 7d")

// ParseDuration reads a duration from 0 to MaxDuration, as in 1500ms, 90s,
// 1h30m, 1.5h, 7d or 2w: numbers, each with its unit, which add up. A number
// without a unit is an error, because it would be a guess. A d is 24 hours and
// a w 7 of them, whatever the clocks do.
func ParseDuration(s string) (time.Duration, error) {
	d, err := sum(s)
	if len(s) > 1 && s[0] == '-' && s[1] >= '0' && s[1] <= '9' {
		err = ErrNegative
	}
	if err != nil {
		return 0, fmt.Errorf("%s %w", quote(s), err)
	}
	return d, nil
}

// parseDurationFrom is ParseDuration for what must be at least lowest.
func parseDurationFrom(s string, lowest time.Duration) (time.Duration, error) {
	d, err := ParseDuration(s)
	if err == nil && d < lowest {
		err = fmt.Errorf("%s is too short: want %s or more", quote(s), FormatDuration(lowest))
	}
	return d, err
}

func sum(s string) (time.Duration, error) {
	if s == "" || len(s) > maxQuoted {
		return 0, errNoDuration
	}
	var total time.Duration
	for rest := s; rest != ""; {
		var number, name string
		number, rest = leading(rest, "0123456789.")
		name, rest = leading(rest, letters)
		part, err := product(number, name)
		switch {
		case err != nil:
			return 0, err
		case name == "" && rest == "" && number == s:
			return 0, fmt.Errorf("has no unit: write %ss", s)
		case name == "" && rest == "":
			return 0, fmt.Errorf("ends without a unit: write %sm or %ss, say", s, s)
		case name == "":
			return 0, errNoDuration
		}
		if total += part; total > MaxDuration {
			return 0, ErrTooLong
		}
	}
	return total, nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// leading cuts off the longest beginning of s that is made of chars.
func leading(s, chars string) (string, string) {
	rest := strings.TrimLeft(s, chars)
	return s[:len(s)-len(rest)], rest
}

// product is number times the unit of that name, at most MaxDuration; without
// a name, it only looks at the number.
func product(number, name string) (time.Duration, error) {
	whole, fraction, dotted := strings.Cut(number, ".")
	if whole == "" || strings.Contains(fraction, ".") || dotted && fraction == "" {
		return 0, errNoDuration
	}
	unit, ok := unitOf(name)
	if !ok {
		return 0, fmt.Errorf("has an unknown unit, %s: want ms, s, m, h, d or w", name)
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > int64(MaxDuration/unit) {
		return 0, ErrTooLong
	}
	part, _ := strconv.ParseFloat("0."+fraction+"0", 64) // digits, so there is no error
	return time.Duration(n)*unit + time.Duration(math.Round(part*float64(unit))), nil
}

func unitOf(name string) (time.Duration, bool) {
	switch name {
	case "ms":
		return time.Millisecond, true
	case "s":
		return time.Second, true
	case "m":
		return time.Minute, true
	case "h":
		return time.Hour, true
	case "d":
		return day, true
	case "w":
		return week, true
	}
	return time.Nanosecond, name == ""
}

// FormatDuration writes d for people, as in 250ms, 1.5s, 29m58s or 7d: to the
// millisecond, and from a minute on to the second, cutting off the rest. What
// it writes of a d from 0 to MaxDuration, ParseDuration reads.
func FormatDuration(d time.Duration) string {
	if d.Abs() < time.Minute {
		return d.Truncate(time.Millisecond).String()
	}
	var out strings.Builder
	if d < 0 {
		out.WriteByte('-')
	}
	rest := d.Abs()
	for _, unit := range []string{"d", "h", "m", "s"} {
		size, _ := unitOf(unit)
		if n := rest / size; n > 0 {
			fmt.Fprintf(&out, "%d%s", n, unit)
		}
		rest %= size
	}
	return out.String()
}
