package config

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	kibibyte = 1 << 10
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// maxSize is the longest value Redis holds.
const maxSize = 512 * mebibyte

// whole reads a number from lowest to highest.
func whole[T int | int64](to *T, lowest, highest T) field {
	want := fmt.Sprintf("a whole number from %d to %d", lowest, highest)
	return parsed(to, want, func(s string) (T, error) {
		n, err := strconv.ParseInt(digits(s), 10, 64)
		if err != nil || n < int64(lowest) || n > int64(highest) {
			return 0, fmt.Errorf("%s is not %s", quote(s), want)
		}
		return T(n), nil
	})
}

// share reads a number from 0 to 1.
func share(to *float64) field {
	const want = "a number from 0 to 1"
	return parsed(to, want, func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return 0, fmt.Errorf("%s is not %s", quote(s), want)
		}
		return f, nil
	})
}

// size reads a number of bytes from 1 to highest, which has a name.
func size(to *int64, highest int64, name string) field {
	return parsed(to, "a size from 1 to "+name+", like 64KiB", func(s string) (int64, error) {
		return ParseSize(s, highest, name)
	})
}

// ParseSize reads a number of bytes, as in 1048576, 1024KiB or 1MiB: at least 1
// and at most highest, which errors call by name.
func ParseSize(s string, highest int64, name string) (int64, error) {
	number := strings.TrimRight(s, "BKMGi")
	units := map[string]int64{"": 1, "B": 1, "KiB": kibibyte, "MiB": mebibyte, "GiB": gibibyte}
	unit, ok := units[s[len(number):]]
	n, err := strconv.ParseInt(digits(number), 10, 64)
	switch {
	case !ok || err != nil:
		return 0, fmt.Errorf("%s is not a size: write it in bytes, or like 64KiB or 1MiB", quote(s))
	case n < 1 || n > highest/unit:
		return 0, fmt.Errorf("%s is out of range: want 1 to %s", quote(s), name)
	}
	return n * unit, nil
}

// digits drops the underscores that YAML allows in numbers.
func digits(s string) string { return strings.ReplaceAll(s, "_", "") }
