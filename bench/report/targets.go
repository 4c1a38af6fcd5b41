package report

import (
	"fmt"
	"strings"
)

// A target is one condition of the table of what Keyfuse must reach, in its words.
type target struct {
	figure    string
	must, aim string // one of them
	judge     judge
}

const (
	drained = "burst drain, runs a second"
	beside  = "lateness beside 1,000,000 pending"
	million = 1_000_000
	idles   = "idle"
	growing = "growth from 10,000 to 3,000,000 pending"
)

// targets are all that Keyfuse must reach, and what it aims at.
func targets() []target {
	return []target{
		{drained, "≥ 10 × asynq's best", "", drain(asynq, atLeast(10))},
		{drained, "≥ 1.5 × bare keyspace notifications, with a GETDEL for each event", "", drain(events, atLeast(1.5))},
		{drained, "≥ 50 % of the bare claim-and-settle scripts in a loop", "", drain(scripts, atLeast(0.5))},
		{drained, "", "≥ 1 × database polling in batches", drain(polling, atLeast(1))},
		{drained, "", "≥ 75 % of the scripts", drain(scripts, atLeast(0.75))},
		{beside, "p50 ≤ 3 ms", "", unless("late-p50", million, value("late-p50", million, atMost(3)), "unrun")},
		{beside, "p99 ≤ 10 ms", "", unless("late-p99", million, value("late-p99", million, atMost(10)), "unrun")},
		{beside, "none early", "", unless("early", million, never, "early")},
		{beside, "p99 ≤ 1/10 of every durable peer's", "", unless("late-p99", million, everyPeer("late-p99", million, atMost(0.1)), "unrun")},
		{beside, "", "p99 ≤ 3 × the in-process heap's", unless("late-p99", million, timesAt("late-p99", million, heap, atMost(3)), "unrun")},
		{"scheduling, one caller", "≥ 0.9 × a plain pipelined SET+SET round trip, which is how bare events are scheduled", "", times("schedule-1", events, atLeast(0.9))},
		{"scheduling, 32 callers of one job each", "≥ 1.5 × asynq", "", times("schedule-32", asynq, atLeast(1.5))},
		{"scheduling, 32 callers of one job each", "", "≥ 60,000 a second", value("schedule-32", anySize, atLeast(60_000))},
		{"scheduling, bulk", "≥ 35 % of go-redis's pipelined SET rate, one SET a job", "", times("schedule-bulk", sets, atLeast(0.35))},
		{"scheduling, bulk", "", "≥ 1 × PostgreSQL COPY", times("schedule-bulk", polling, atLeast(1))},
		{"memory a pending job", "≤ 0.75 × asynq's", "", times("memory", asynq, atMost(0.75))},
		{"memory a pending job", "", "≤ bare events' own layout + 25 %", times("memory", events, atMost(1.25))},
		{"longest block of Redis in a 500,000 burst", "≤ 5 ms", "", unless("burst-ping", 500_000, block(500_000, atMost(5)), "burst-unrun")},
		{"longest block of Redis in a 500,000 burst", "", "≤ 2 ms", unless("burst-ping", 500_000, block(500_000, atMost(2)), "burst-unrun")},
		{idles, "≤ 1 command a second", "", value("idle-commands", anySize, atMost(1))},
		{idles, "CPU of the worker ≤ 0.3 %", "", value("idle-cpu-worker", anySize, atMost(0.3))},
		{idles, "CPU of the store ≤ 0.3 %", "", value("idle-cpu-store", anySize, atMost(0.3))},
		{"in flight at `kill -9`: run again", "within 15 s", "", unless("kill-again", anySize, value("kill-again", anySize, atMost(15)), "kill-lost")},
		{"in flight at `kill -9`: run again", "", "within 5 s", unless("kill-again", anySize, value("kill-again", anySize, atMost(5)), "kill-lost")},
		{growing, "drain changes by ≤ 20 %", "", growth("growth-rate", 20)},
		{growing, "lateness p50 changes by ≤ 20 %", "", growth("growth-late-p50", 20)},
		{growing, "lateness p99 changes by ≤ 20 %", "", growth("growth-late-p99", 20)},
	}
}

// targetsTable is the table of the targets, and how many were met.
func targetsTable(m *measured) string {
	t := &table{heads: []string{"figure", "must reach", "aim", "measured", ""}, text: 5}
	musts, aims := make(map[grade]int), make(map[grade]int)
	for _, target := range targets() {
		v := target.judge(m)
		measured := v.text
		if v.lacks != "" {
			measured = "not measured: " + v.lacks
		}
		t.row(target.figure, target.must, target.aim, measured+t.marks(v.notes...), v.outcome())
		if target.must != "" {
			musts[v.grade()]++
		} else {
			aims[v.grade()]++
		}
	}
	return tally("Must reach", musts) + tally("Aims", aims) + "\n" + t.String()
}

func tally(what string, n map[grade]int) string {
	var counts []string
	for _, c := range []grade{met, metByFew, missed, missedByFew, notMeasured} {
		counts = append(counts, fmt.Sprintf("%d %s", n[c], c))
	}
	return fmt.Sprintf("%s: %s.\n", what, strings.Join(counts, ", "))
}
