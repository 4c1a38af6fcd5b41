package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// given is what is known from values of ways whose jobs are in Redis, except the heap's.
func given(t *testing.T, values ...result.Value) *measured {
	t.Helper()
	var results result.Results
	for _, v := range values {
		store := "redis"
		if v.Way == "heap" {
			store = ""
		}
		results.Ways = append(results.Ways, result.Way{Name: v.Way, Store: store})
	}
	results.Values = values
	return collect(results)
}

func one(way, figure string, size int, value float64) result.Value {
	return result.Value{Way: way, Figure: figure, Size: size, Value: value}
}

// thrice are the same values in three rounds, which are enough.
func thrice(values ...result.Value) []result.Value {
	var all []result.Value
	for round := range 3 {
		for _, v := range values {
			v.Round = round
			all = append(all, v)
		}
	}
	return all
}

// absent is a value that there is not.
func absent(way, figure string, size int, why string) result.Value {
	return result.Value{Way: way, Figure: figure, Size: size, Absent: true, Note: why}
}

// judged is a judge, values of three rounds each, and what comes of them.
type judged struct {
	judge  judge
	values []result.Value
	want   grade
}

func (c judged) test(t *testing.T) {
	t.Helper()
	v := c.judge(given(t, thrice(c.values...)...))
	if got := v.grade(); got != c.want {
		t.Errorf("got %s, want %s: %+v", got, c.want, v)
	}
}

func rate(way string, size int, perSecond float64) result.Value {
	return one(way, "burst-rate", size, perSecond)
}

func p99(way string, ms float64) result.Value { return one(way, "late-p99", million, ms) }

// clean are bursts of Keyfuse in which every job ran once and when it was due.
func clean(size int) []result.Value {
	return []result.Value{
		one("keyfuse", "burst-unrun", size, 0), one("keyfuse", "burst-early", size, 0), one("keyfuse", "burst-twice", size, 0),
	}
}

// asynqs are both of its forms.
func asynqs(size int, slow, fast float64) []result.Value {
	return []result.Value{rate("asynq", size, slow), rate("asynq-fast", size, fast)}
}

func TestDrain(t *testing.T) {
	tenTimes := drain(asynq, atLeast(10))
	drained := func(values ...result.Value) []result.Value { return append(clean(50), values...) }
	for name, c := range map[string]judged{
		"a ratio that is reached exactly":     {tenTimes, drained(append(asynqs(50, 9, 10), rate("keyfuse", 50, 100))...), met},
		"a ratio just missed":                 {tenTimes, drained(append(asynqs(50, 9, 10), rate("keyfuse", 50, 99.9))...), missed},
		"the best form of the peer counts":    {tenTimes, drained(append(asynqs(50, 11, 5), rate("keyfuse", 50, 100))...), missed},
		"the daemon does not count":           {tenTimes, drained(append(asynqs(50, 9, 10), rate("keyfuse", 50, 50), rate("keyfuse-daemon", 50, 100))...), missed},
		"the daemon alone":                    {tenTimes, drained(append(asynqs(50, 9, 10), rate("keyfuse-daemon", 50, 100))...), notMeasured},
		"the daemon loses some":               {tenTimes, drained(append(asynqs(50, 9, 10), rate("keyfuse", 50, 100), one("keyfuse-daemon", "burst-unrun", 50, 9))...), met},
		"a named form of the peer lacks":      {tenTimes, drained(rate("asynq", 50, 10), rate("keyfuse", 50, 100)), notMeasured},
		"missed by the form that there is":    {tenTimes, drained(rate("asynq", 50, 11), rate("keyfuse", 50, 100)), missed},
		"a form of the peer is absent":        {drain(polling, atLeast(1)), drained(rate("postgres-1s", 50, 9), absent("postgres-100ms", "burst-rate", 50, "late"), rate("keyfuse", 50, 10)), notMeasured},
		"no peer":                             {tenTimes, drained(rate("keyfuse", 50, 100)), notMeasured},
		"no Keyfuse":                          {tenTimes, asynqs(50, 9, 10), notMeasured},
		"no size in common":                   {tenTimes, drained(append(asynqs(90, 1, 1), rate("keyfuse", 50, 100))...), notMeasured},
		"a peer at zero":                      {tenTimes, drained(append(asynqs(50, 0, 0), rate("keyfuse", 50, 100))...), notMeasured},
		"some never ran":                      {tenTimes, append(asynqs(50, 1, 1), clean(50)[1], clean(50)[2], one("keyfuse", "burst-unrun", 50, 1), rate("keyfuse", 50, 100)), missed},
		"some ran early":                      {tenTimes, append(asynqs(50, 1, 1), clean(50)[0], clean(50)[2], one("keyfuse", "burst-early", 50, 1), rate("keyfuse", 50, 100)), missed},
		"some ran twice":                      {tenTimes, append(asynqs(50, 1, 1), clean(50)[0], clean(50)[1], one("keyfuse", "burst-twice", 50, 1), rate("keyfuse", 50, 100)), missed},
		"nobody knows whether some ran twice": {tenTimes, append(asynqs(50, 1, 1), clean(50)[0], clean(50)[1], rate("keyfuse", 50, 100)), notMeasured},
		"nobody knows of the second size":     {tenTimes, drained(append(asynqs(50, 1, 1), rate("keyfuse", 50, 100), rate("keyfuse", 90, 100))...), notMeasured},
	} {
		t.Run(name, c.test)
	}
}

func TestTheWorstSizeCounts(t *testing.T) {
	both := func(values ...result.Value) []result.Value {
		return slices.Concat(clean(50), clean(90), asynqs(50, 1, 1), asynqs(90, 1, 1), values)
	}
	for name, c := range map[string]judged{
		"met at both":          {drain(asynq, atLeast(10)), both(rate("keyfuse", 50, 100), rate("keyfuse", 90, 10)), met},
		"missed at one":        {drain(asynq, atLeast(10)), both(rate("keyfuse", 50, 100), rate("keyfuse", 90, 9)), missed},
		"not there at one":     {drain(asynq, atLeast(10)), both(rate("keyfuse", 50, 100), absent("keyfuse", "burst-rate", 90, "late")), notMeasured},
		"missed and not there": {drain(asynq, atLeast(10)), both(rate("keyfuse", 50, 9), absent("keyfuse", "burst-rate", 90, "late")), missed},
	} {
		t.Run(name, c.test)
	}
}

func TestLateness(t *testing.T) {
	ran := one("keyfuse", "unrun", million, 0)
	never := unless("late-p99", million, never, "early")
	peers := unless("late-p99", million, everyPeer("late-p99", million, atMost(0.1)), "unrun")
	for name, c := range map[string]judged{
		"a value within its bound":          {value("late-p99", million, atMost(10)), []result.Value{p99("keyfuse", 10)}, met},
		"a value beyond":                    {value("late-p99", million, atMost(10)), []result.Value{p99("keyfuse", 10.01)}, missed},
		"a value at another size":           {value("late-p99", million, atMost(10)), []result.Value{one("keyfuse", "late-p99", 500, 1)}, notMeasured},
		"an absent value":                   {value("late-p99", million, atMost(10)), []result.Value{absent("keyfuse", "late-p99", million, "late")}, notMeasured},
		"the daemon's value":                {value("late-p99", million, atMost(10)), []result.Value{p99("keyfuse", 11), p99("keyfuse-daemon", 1)}, missed},
		"none early":                        {never, []result.Value{one("keyfuse", "early", million, 0)}, met},
		"one early":                         {never, []result.Value{one("keyfuse", "early", million, 1)}, missed},
		"early was not looked at":           {never, []result.Value{p99("keyfuse", 1)}, notMeasured},
		"every peer, heap aside":            {peers, []result.Value{ran, p99("keyfuse", 5), p99("asynq", 50), p99("heap", 2)}, met},
		"every peer, the daemon aside":      {peers, []result.Value{ran, p99("keyfuse", 5), p99("asynq", 50), p99("keyfuse-daemon", 6)}, met},
		"every peer, floors aside":          {peers, []result.Value{ran, p99("keyfuse", 5), p99("asynq", 50), p99("scripts", 6), one("plain SETs", "schedule-1", 0, 1)}, met},
		"every peer but one":                {peers, []result.Value{ran, p99("keyfuse", 5), p99("asynq", 50), p99("zset-poll", 49)}, missed},
		"every peer, one without it":        {peers, []result.Value{ran, p99("keyfuse", 5), p99("asynq", 50), rate("zset-poll", 50, 1)}, notMeasured},
		"missed by one, another without it": {peers, []result.Value{ran, p99("keyfuse", 5), p99("asynq", 49), rate("zset-poll", 50, 1)}, missed},
		"every peer, but a counter":         {peers, []result.Value{ran, p99("keyfuse", 5), p99("asynq", 50), one("incr", "hits-1", 0, 1)}, met},
		"no peers":                          {peers, []result.Value{ran, p99("keyfuse", 5), p99("heap", 50)}, notMeasured},
		"some never ran":                    {peers, []result.Value{one("keyfuse", "unrun", million, 1), p99("keyfuse", 5), p99("asynq", 50)}, missed},
	} {
		t.Run(name, c.test)
	}
}

func TestScheduling(t *testing.T) {
	bulk := func(way string, perSecond float64) result.Value { return one(way, "schedule-bulk", 0, perSecond) }
	single := func(way string, perSecond float64) result.Value { return one(way, "schedule-1", 0, perSecond) }
	ofSets, ofEvents := times("schedule-bulk", sets, atLeast(0.35)), times("schedule-1", events, atLeast(0.9))
	for name, c := range map[string]judged{
		"enough of the SETs":            {ofSets, []result.Value{bulk("keyfuse", 35), bulk("plain SETs", 100)}, met},
		"not enough of the SETs":        {ofSets, []result.Value{bulk("keyfuse", 34.9), bulk("plain SETs", 100)}, missed},
		"SETs of bare events only":      {ofSets, []result.Value{bulk("keyfuse", 35), bulk("bare events", 50)}, notMeasured},
		"bare events, the plain form":   {ofEvents, []result.Value{single("keyfuse", 90), single("bare events", 100), single("bare events-fast", 101)}, met},
		"bare events, the fast form":    {ofEvents, []result.Value{single("keyfuse", 90), single("bare events-fast", 100)}, notMeasured},
		"bare events, SETs are not one": {ofEvents, []result.Value{single("keyfuse", 90), single("plain SETs", 10)}, notMeasured},
	} {
		t.Run(name, c.test)
	}
}

func TestLongestBlock(t *testing.T) {
	latency := func(ms float64) result.Value { return one("keyfuse", "burst-latency", 500_000, ms) }
	ping := func(ms float64) result.Value { return one("keyfuse", "burst-ping", 500_000, ms) }
	for name, c := range map[string]judged{
		"LATENCY may have cut off almost one": {block(500_000, atMost(5)), []result.Value{latency(5), ping(1)}, missed},
		"LATENCY with what it cut off":        {block(500_000, atMost(5)), []result.Value{latency(4), ping(1)}, met},
		"LATENCY of nothing is less than one": {block(500_000, atMost(1)), []result.Value{latency(0), ping(0.5)}, met},
		"but not nothing":                     {block(500_000, atMost(0.9)), []result.Value{latency(0), ping(0.5)}, missed},
		"PING was longer":                     {block(500_000, atMost(5)), []result.Value{latency(2), ping(5.1)}, missed},
		"no PING":                             {block(500_000, atMost(5)), []result.Value{latency(2)}, notMeasured},
		"another size":                        {block(50_000, atMost(5)), []result.Value{latency(2), ping(1)}, notMeasured},
	} {
		t.Run(name, c.test)
	}
}

func TestTheLongerIsTakenInEachRound(t *testing.T) {
	var values []result.Value
	for round, v := range [][2]float64{{5, 0}, {0, 5}, {0, 1}} { // 6, 5, 1 ms
		values = append(values, result.Value{Way: "keyfuse", Figure: "burst-latency", Size: 50, Round: round, Value: v[0]},
			result.Value{Way: "keyfuse", Figure: "burst-ping", Size: 50, Round: round, Value: v[1]})
	}
	v := block(50, atMost(4.9))(given(t, values...))
	if v.grade() != missed || !strings.Contains(v.text, "keyfuse: 5.00 ms (50)") {
		t.Errorf("got %+v", v)
	}
}

func TestKill(t *testing.T) {
	soon := unless("kill-again", anySize, value("kill-again", anySize, atMost(15)), "kill-lost")
	again, lost := one("keyfuse", "kill-again", 0, 15), one("keyfuse", "kill-lost", 0, 0)
	for name, c := range map[string]judged{
		"soon":             {soon, []result.Value{again, lost}, met},
		"some never again": {soon, []result.Value{again, one("keyfuse", "kill-lost", 0, 1)}, missed},
		"none again":       {soon, []result.Value{absent("keyfuse", "kill-again", 0, "0 of 9"), one("keyfuse", "kill-lost", 0, 9)}, missed},
		"none in flight":   {soon, []result.Value{absent("keyfuse", "kill-again", 0, "0 of 0"), lost}, notMeasured},
	} {
		t.Run(name, c.test)
	}
}

// atAllSizes are a figure of Keyfuse at the sizes of growth, and what guards it.
func atAllSizes(figure string, medians ...float64) []result.Value {
	var values []result.Value
	for i, v := range medians {
		size := grown()[i]
		values = append(values, one("keyfuse", figure, size, v),
			one("keyfuse", "growth-early", size, 0), one("keyfuse", "growth-unrun", size, 0))
	}
	return values
}

func TestGrowth(t *testing.T) {
	rates, late := growth("growth-rate", 20), growth("growth-late-p99", 20)
	noEarly := func(v result.Value) bool { return v.Figure == "growth-early" }
	for name, c := range map[string]judged{
		"for the better":        {rates, atAllSizes("growth-rate", 10, 10, 10, 30), met},
		"for the worse":         {rates, atAllSizes("growth-rate", 10, 10, 10, 7.9), missed},
		"of lateness":           {late, atAllSizes("growth-late-p99", 10, 10, 10, 12.1), missed},
		"of lateness, a little": {late, atAllSizes("growth-late-p99", 10, 10, 10, 12), met},
		"that was cut short":    {rates, atAllSizes("growth-rate", 10, 10, 10), notMeasured},
		"without what is between": {rates, dropped(atAllSizes("growth-rate", 10, 10, 10, 10), func(v result.Value) bool {
			return v.Size == million && v.Figure == "growth-rate"
		}), notMeasured},
		"with a job that never ran": {late, append(dropped(atAllSizes("growth-late-p99", 10, 10, 10, 10), func(v result.Value) bool {
			return v.Size == million && v.Figure == "growth-unrun"
		}), one("keyfuse", "growth-unrun", million, 1)), missed},
		"with an early job":              {late, append(dropped(atAllSizes("growth-late-p99", 10, 10, 10, 10), noEarly), one("keyfuse", "growth-early", million, 1)), missed},
		"nobody knows whether any early": {late, dropped(atAllSizes("growth-late-p99", 10, 10, 10, 10), noEarly), notMeasured},
	} {
		t.Run(name, c.test)
	}
}

// dropped are the values without some.
func dropped(values []result.Value, some func(v result.Value) bool) []result.Value {
	var rest []result.Value
	for _, v := range values {
		if !some(v) {
			rest = append(rest, v)
		}
	}
	return rest
}

func TestFewRoundsAreCountedApart(t *testing.T) {
	within := value("late-p99", million, atMost(10))
	two := thrice(p99("keyfuse", 10))[:2]
	peers := everyPeer("late-p99", million, atMost(0.1))
	guarded := unless("late-p99", million, within, "unrun")
	for name, c := range map[string]struct {
		judge   judge
		values  []result.Value
		grade   grade
		outcome string
	}{
		"three":               {within, thrice(p99("keyfuse", 10)), met, "met"},
		"two":                 {within, two, metByFew, "met, of 2 rounds"},
		"one":                 {within, two[:1], metByFew, "met, of one round"},
		"one, missed":         {within, []result.Value{p99("keyfuse", 11)}, missedByFew, "**missed**, of one round"},
		"of a peer":           {peers, append(thrice(p99("keyfuse", 1), p99("asynq", 20)), p99("zset-poll", 90)), metByFew, "met, of one round"},
		"of a peer not in it": {peers, append(thrice(p99("keyfuse", 1), p99("asynq", 2)), p99("zset-poll", 90)), missed, "**missed**"},
		"of a guard":          {guarded, append(thrice(p99("keyfuse", 1)), one("keyfuse", "unrun", million, 0)), metByFew, "met, of one round"},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.judge(given(t, c.values...))
			if v.grade() != c.grade || v.outcome() != c.outcome {
				t.Errorf("got %s, %q, want %s, %q", v.grade(), v.outcome(), c.grade, c.outcome)
			}
		})
	}
}

func TestTally(t *testing.T) {
	const want = "Must reach: 9 met, 2 met of fewer than three rounds, 3 missed, 0 missed of fewer than three rounds, 1 not measured.\n"
	if got := tally("Must reach", map[grade]int{met: 9, metByFew: 2, missed: 3, notMeasured: 1}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNothingIsMetWithoutFigures(t *testing.T) {
	for _, target := range targets() {
		if got := target.judge(given(t)).outcome(); got != "not measured" {
			t.Errorf("%s %s%s: %s", target.figure, target.must, target.aim, got)
		}
		if (target.must == "") == (target.aim == "") {
			t.Errorf("%s: one of must and aim has to be there", target.figure)
		}
	}
}

func TestWhatIsLackingIsNamed(t *testing.T) {
	m := given(t, p99("keyfuse", 5), p99("asynq", 70), absent("zset-poll", "late-p99", million, "too slow"))
	v := everyPeer("late-p99", million, atMost(0.1))(m)
	if !strings.Contains(v.lacks, "zset-poll") || !strings.Contains(v.lacks, "asynq 70.0 ms") || !strings.Contains(strings.Join(v.notes, ""), "too slow") {
		t.Errorf("got %+v", v)
	}
	v = timesAt("late-p99", million, asynq, atMost(1))(m)
	if want := "late-p99 of asynq-fast at 1,000,000 (of the others: "; !strings.HasPrefix(v.lacks, want) {
		t.Errorf("%q lacks %q", v.lacks, want)
	}
}
