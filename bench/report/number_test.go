package report

import "testing"

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1.00", 12.34: "12.3", 99.95: "100", 9.996: "10.0", 999.6: "1,000",
		1234: "1,230", 123_456: "123,000", 3_814_159: "3,810,000", 1e9: "1,000,000,000",
		0.5: "0.500", 0.012345: "0.0123", -1234.5: "−1,230", -0.25: "−0.250",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %q, want %q", v, got, want)
		}
	}
}

func TestCountsAreShownInFull(t *testing.T) {
	for _, c := range []struct {
		unit  string
		value float64
		want  string
	}{
		{"jobs", 123_456, "123,456"},
		{"firings", 0, "0"},
		{"jobs", 1.5, "1.50"}, // the median of two rounds
		{"runs/s", 123_456, "123,000"},
	} {
		if got := in(c.unit, c.value); got != c.want {
			t.Errorf("%v %s is %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want string
	}{
		{100, 120, "+20.0 %"},
		{100, 50, "−50.0 %"},
		{100, 100.01, "0 %"},
		{10, 100, "+900 %"},
	} {
		if got := change(c.a, c.b); got != c.want {
			t.Errorf("from %v to %v is %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func TestWhen(t *testing.T) {
	if got := when("2000-01-01T02:00:00+01:00"); got != "2000-01-01 01:00 UTC" {
		t.Errorf("got %q", got)
	}
	if got := when("some_day"); got != `some\_day` {
		t.Errorf("got %q", got)
	}
}
