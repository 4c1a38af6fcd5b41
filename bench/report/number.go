package report

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// number is a value with three significant digits and thousands separators.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	short := strconv.FormatFloat(v, 'e', 2, 64)
	v, _ = strconv.ParseFloat(short, 64)
	_, exponent, _ := strings.Cut(short, "e")
	power, _ := strconv.Atoi(exponent)
	return separated(strconv.FormatFloat(v, 'f', max(0, 2-power), 64))
}

// count is a whole number in full.
func count(n int) string { return separated(strconv.Itoa(n)) }

// separated puts separators between the thousands of a number's whole part.
func separated(digits string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(digits, "-"); ok {
		sign, digits = "−", rest
	}
	whole, fraction, found := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		whole += "." + fraction
	}
	return sign + whole
}

// in is a value of a unit, without the unit: what can be counted is shown in full.
func in(unit string, v float64) string {
	if (unit == "jobs" || unit == "firings") && v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return count(int(v))
	}
	return number(v)
}

// change is how much b is more than a, in per cent; a is not 0.
func change(a, b float64) string {
	percent := 100 * (b - a) / a
	if math.Abs(percent) < 0.05 {
		return "0 %"
	}
	if percent > 0 {
		return "+" + number(percent) + " %"
	}
	return number(percent) + " %"
}

// when is an RFC 3339 time as people write it; anything else as it is.
func when(stamp string) string {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return escape(stamp)
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}
