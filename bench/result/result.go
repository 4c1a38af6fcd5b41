// Package result is what a comparison measured, as it is kept in a file: raw values, one
// for each round, from which the report is made.
package result

// Results is a whole comparison. Runs of parts of it are merged into one.
type Results struct {
	Size     string            `json:"size"` // full or smoke: all its values are of one
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"` // of servers, languages, libraries and Keyfuse's commit
	Missing  map[string]string `json:"missing"`  // ways that were left out, and why
	Ways     []Way             `json:"ways"`     // those that took part, in the order of package ways
	Values   []Value           `json:"values"`
	Runs     []Run             `json:"runs"` // that were made for them, in the order of time
}

// Run is one measurement of one way in one round, made in a process of its own. One that
// is made again takes the place of the older one with all its values. If it fails without
// any, the older one and its values stay, and its Failed says when it was tried again and
// why that failed.
type Run struct {
	Figure string  `json:"figure"` // of package measure: a run gives values of several Figures
	Way    string  `json:"way"`
	Round  int     `json:"round"`
	At     string  `json:"at"`               // when it began, RFC 3339
	Commit string  `json:"commit"`           // of Keyfuse, as in Versions
	Kernel string  `json:"kernel,omitempty"` // of the machine: parts may be of different ones
	Took   float64 `json:"took"`             // seconds, with starting and stopping the servers
	Failed string  `json:"failed,omitempty"` // why there are not all values, or none
}

// Way is what is known of a way beside its figures.
type Way struct {
	Name  string `json:"name"`
	What  string `json:"what"`
	Store string `json:"store"` // the servers that keep its jobs: "redis"; empty: its own process
}

// Machine is where it was measured.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	Begun  string `json:"begun"` // RFC 3339
	Ended  string `json:"ended"`
	Load   string `json:"load"` // before it began
}

// Value is one figure of one way in one round.
type Value struct {
	Way    string  `json:"way"`
	Kind   string  `json:"kind"`   // the Figure of its Run
	Figure string  `json:"figure"` // see Figures
	Size   int     `json:"size"`   // jobs: of the burst, or pending beside; 0 where it has none
	Round  int     `json:"round"`  // from 0
	Value  float64 `json:"value"`
	Note   string  `json:"note,omitempty"` // why it is not what one would think: "stopped after 120 s", …
	// Absent: there is no such figure, and Note says why; Value means nothing.
	Absent bool `json:"absent,omitempty"`
}

// Figure is a kind of value.
type Figure struct {
	Name, Unit, What string
	MoreIsBetter     bool
}

// Figures are all that is measured.
func Figures() []Figure {
	return []Figure{
		{"schedule-1", "jobs/s", "scheduling, one caller", true},
		{"schedule-32", "jobs/s", "scheduling, 32 callers of one job each", true},
		{"schedule-bulk", "jobs/s", "scheduling, the way's own bulk call", true},
		{"memory", "bytes/job", "memory of the store a pending job", false},
		{"late-p50", "ms", "lateness, half of 10,000 jobs over 30 s", false},
		{"late-p99", "ms", "lateness, all but 1 % of them", false},
		{"late-max", "ms", "lateness, the worst of them", false},
		{"early", "jobs", "started before they were due", false},
		{"unrun", "jobs", "not run within the time that was waited", false},
		{"twice", "jobs", "run more than once without any fault", false},
		{"burst-rate", "runs/s", "jobs due at one moment, from then until the last has run", true},
		{"burst-late-p50", "ms", "lateness in the burst", false},
		{"burst-late-p99", "ms", "lateness in the burst", false},
		{"burst-early", "jobs", "started before they were due in the burst", false},
		{"burst-unrun", "jobs", "of the burst, not run within the time that was waited", false},
		{"burst-twice", "jobs", "of the burst, run more than once without any fault", false},
		{"burst-block", "ms", "longest time Redis was blocked in the burst: LATENCY's longest command, or the p99 of a PING beside it if that is longer", false},
		{"burst-latency", "ms", "the longest that LATENCY tells of; 0 if nothing took 1 ms", false},
		{"burst-ping", "ms", "p99 of a PING every millisecond beside it", false},
		{"burst-cpu-store", "µs/run", "CPU of the store", false},
		{"burst-cpu-worker", "µs/run", "CPU of the worker", false},
		{"idle-commands", "1/s", "commands or statements of an idle worker", false},
		{"idle-cpu-worker", "%", "CPU of an idle worker, of one core", false},
		{"idle-cpu-store", "%", "CPU of its store, of one core", false},
		{"kill-lost", "jobs", "not run again within the time that was watched after a kill -9 of the worker", false},
		{"kill-twice", "jobs", "run again although they had ended", false},
		{"kill-again", "s", "from the kill until the last job that was in flight ran again", false},
		{"growth-schedule", "jobs/s", "growth: scheduling up to so many pending, by the fastest call", true},
		{"growth-memory", "bytes/job", "growth: memory of the store a pending job", false},
		{"growth-late-p50", "ms", "growth: lateness beside so many pending, half of 10,000 jobs over 30 s", false},
		{"growth-late-p99", "ms", "growth: lateness beside so many pending, all but 1 % of them", false},
		{"growth-early", "jobs", "growth: started before they were due, beside so many pending", false},
		{"growth-unrun", "jobs", "growth: not run within the time that was waited, beside so many pending", false},
		{"growth-rate", "runs/s", "growth: a burst of 50,000 jobs beside so many pending", true},
		{"hits-1", "hits/s", "threshold, one caller", true},
		{"hits-32", "hits/s", "threshold, 32 callers", true},
		{"hits-bulk", "hits/s", "threshold, the way's own bulk call", true},
		{"fired-wrong", "firings", "too many or too few", false},
	}
}
