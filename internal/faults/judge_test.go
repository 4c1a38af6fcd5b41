package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// The check is checked on records that are made up: what it should find, and what
// it should let pass.

// made is a book in the making. Times are ms after its beginning.
type made struct {
	*book
	procs map[string]*proc
}

func (m *made) proc(name string) *proc {
	if m.procs[name] == nil {
		m.procs[name] = &proc{name: name}
	}
	return m.procs[name]
}

func at(ms int64) int64 {
	if ms == 0 {
		return 0
	}
	return time.Unix(1_700_000_000, 0).Add(time.Duration(ms) * time.Millisecond).UnixNano()
}

// step makes a step of the job "j" that was sent and answered within a ms.
func (m *made) step(o op, a answer, sent, due int64) *step {
	n := m.begin("j", "made", step{op: o, floor: at(due)})
	s := &m.jobs["j"].steps[n]
	s.sent, s.answer = at(sent), a
	if a != unknown {
		s.acked = at(sent + 1)
	}
	if a != unknown && o != bare && o != fuse && o != cancel {
		s.due = at(due)
	}
	return s
}

// call makes a handler's start of "j", and its end and outcome unless empty.
func (m *made) call(daemon, run string, attempt, serial int, start, due int64, end, outcome string) {
	m.callOf(event{id: "j", run: run, attempt: attempt, payload: fmt.Sprint(serial, " -")}, daemon, start, due, end, outcome)
}

func (m *made) callOf(e event, daemon string, start, due int64, end, outcome string) {
	p := m.proc(daemon)
	e.kind, e.at, e.due = started, at(start), at(due)/int64(time.Millisecond)
	events := []event{e}
	if end != "" {
		events = append(events, event{kind: ended, at: at(start + 1), run: e.run, attempt: e.attempt, word: end})
	}
	if outcome != "" {
		events = append(events, event{kind: settled, at: at(start + 2), run: e.run, attempt: e.attempt, word: outcome})
	}
	for _, e := range events {
		if err := m.take(p, e); err != nil {
			panic(err)
		}
	}
}

func (m *made) settle(daemon, run string, attempt int, outcome string) {
	if err := m.take(m.proc(daemon), event{kind: settled, run: run, attempt: attempt, word: outcome}); err != nil {
		panic(err)
	}
}

func (m *made) ran(serial int, start, due int64) {
	m.call("d1", fmt.Sprint("r", serial), 1, serial, start, due, endOK, "done")
}

func (m *made) counted(run string, n int64) {
	m.callOf(event{id: "c", run: run, attempt: 1, count: n, reason: "threshold"}, "d1", 100, 100, endOK, "done")
}

var judged = []struct {
	name string
	make func(m *made)
	want string // what a problem begins with and holds, with a * between; "" for none
}{
	{"a job that ran on time", func(m *made) { m.step(arm, done, 1, 50); m.ran(0, 50, 50) }, ""},
	{"a job that never ran", func(m *made) { m.step(arm, done, 1, 50) }, "lost: armed by step [0]"},
	{"a job whose handler did not end", func(m *made) {
		m.step(arm, done, 1, 50)
		m.call("d1", "r", 1, 0, 60, 50, "", "")
	}, "lost:"},
	{"a job that may not have been armed", func(m *made) { m.step(arm, unknown, 1, 50) }, ""},
	{"a job of which one try was armed, and nobody knows which", func(m *made) {
		m.step(arm, unknown, 1, 50)
		m.step(arm, unknown, 10, 50)
		m.step(arm, kept, 20, 50)
		m.ran(1, 60, 50)
	}, ""},
	{"of those, none ran", func(m *made) { m.step(arm, unknown, 1, 50); m.step(arm, kept, 20, 50) }, "lost: armed by step [0]"},
	{"a job that was armed twice after a lost reply", func(m *made) {
		m.step(arm, unknown, 1, 50)
		m.step(arm, done, 60, 70)
		m.ran(0, 51, 50)
		m.ran(1, 71, 70)
	}, ""},

	{"a run before its own due time", func(m *made) { m.step(arm, done, 1, 50); m.ran(0, 49, 50) }, "early: run r0 started 1ms before its own"},
	{"a run before what was acknowledged", func(m *made) { m.step(arm, done, 1, 50); m.ran(0, 49, 40) }, "early: run r0 started 1ms before it was due"},
	{"a run with another due time", func(m *made) { m.step(arm, done, 1, 50); m.ran(0, 60, 55) }, "ran though cancelled, moved or replaced: run r0 started at a due time"},
	{"a bare job on time", func(m *made) { m.step(bare, done, 1, 50); m.ran(0, 50, 50) }, ""},
	{"a bare job that runs early", func(m *made) { m.step(bare, done, 1, 50); m.ran(0, 49, 49) }, "early: run r0"},
	{"an orphan of a bare job", func(m *made) { m.step(bare, unknown, 1, 50).floor = 0; m.ran(0, 49, 49) }, ""},
	{"a bare job whose fuse was set again", func(m *made) {
		m.step(bare, done, 1, 50)
		m.step(fuse, done, 20, 90)
		m.ran(0, 60, 60)
	}, "early: run r0 started 30ms"},
	{"the same, too late", func(m *made) { m.step(bare, done, 1, 50); m.step(fuse, done, 55, 90); m.ran(0, 60, 50) }, ""},

	{"a job moved later that runs at its old time", func(m *made) {
		m.step(arm, done, 1, 50)
		m.step(move, done, 10, 90)
		m.ran(0, 60, 50)
	}, "early: run r0 started 30ms before it was due"},
	{"a job moved later that runs late at its old time", func(m *made) {
		m.step(arm, done, 1, 50)
		m.step(move, done, 10, 90)
		m.ran(0, 95, 50)
	}, "ran though cancelled, moved or replaced:"},
	{"a job moved later", func(m *made) { m.step(arm, done, 1, 50); m.step(move, done, 10, 90); m.ran(0, 91, 90) }, ""},
	{"a job moved sooner", func(m *made) { m.step(arm, done, 1, 50); m.step(move, done, 10, 30); m.ran(0, 31, 30) }, ""},
	{"a move without an answer", func(m *made) { m.step(arm, done, 1, 50); m.step(move, unknown, 10, 30); m.ran(0, 31, 30) }, ""},
	{"a move that came too late", func(m *made) { m.step(arm, done, 1, 50); m.ran(0, 51, 50); m.step(move, gone, 55, 90) }, ""},
	{"a retry that was moved and does not wait", func(m *made) {
		m.step(arm, done, 1, 50)
		m.call("d1", "r", 1, 0, 51, 50, endFailed, "retried")
		s := m.step(move, done, 60, 90)
		s.retry = true
		m.call("d1", "r", 2, 0, 70, 50, endOK, "done")
	}, "early: run r started 20ms"},

	{"a cancelled job", func(m *made) { m.step(arm, done, 1, 50); m.step(cancel, done, 10, 0) }, ""},
	{"a cancelled job that ran", func(m *made) {
		m.step(arm, done, 1, 50)
		m.step(cancel, done, 10, 0)
		m.ran(0, 51, 50)
	}, "ran though cancelled, moved or replaced: run r0 started although step 1"},
	{"a job that was not there to cancel, and ran", func(m *made) {
		m.step(arm, done, 1, 50)
		m.step(cancel, gone, 10, 0)
		m.ran(0, 51, 50)
	}, "ran though cancelled, moved or replaced:"},
	{"a job cancelled too late that ran", func(m *made) { m.step(arm, done, 1, 50); m.ran(0, 51, 50); m.step(cancel, running, 52, 0) }, ""},
	{"a job cancelled too late that never ran", func(m *made) { m.step(arm, done, 1, 50); m.step(cancel, running, 52, 0) }, "lost:"},

	{"a run that a daemon claimed and never began, of an id that was armed again and cancelled", func(m *made) {
		m.step(arm, unknown, 1, 50)
		m.step(arm, done, 60, 90)
		m.step(cancel, done, 70, 0)
		m.call("d2", "r", 2, 0, 80, 50, endOK, "done")
	}, ""},
	{"the same, and it was not due yet, so that it came after the cancellation", func(m *made) {
		m.step(arm, unknown, 1, 75)
		m.step(arm, done, 60, 90)
		m.step(cancel, done, 70, 0)
		m.call("d2", "r", 2, 0, 80, 75, endOK, "done")
	}, ""},
	{"the same, and it was there before", func(m *made) {
		m.step(arm, unknown, 1, 75)
		m.step(arm, kept, 60, 75)
		m.step(cancel, done, 70, 0)
		m.call("d2", "r", 2, 0, 80, 75, endOK, "done")
	}, "ran though cancelled, moved or replaced: run r started although step 2"},
	{"an answered arming that was cancelled and ran, beside one that came later", func(m *made) {
		m.step(arm, unknown, 1, 75)
		m.step(arm, done, 60, 90)
		m.step(cancel, done, 70, 0)
		m.ran(1, 95, 90)
	}, "ran though cancelled, moved or replaced: run r1 started although step 2"},
	{"a replaced job whose first try came behind the second", func(m *made) {
		m.step(arm, done, 1, 500)
		m.replace(unknown, 10, 90)
		m.replace(replaced, 60, 140)
		m.ran(1, 145, 142)
	}, ""},
	{"the same, and the first try came before", func(m *made) {
		m.step(arm, done, 1, 500)
		m.replace(unknown, 10, 90)
		m.replace(replaced, 60, 140)
		m.ran(1, 145, 91)
		m.ran(2, 145, 140)
	}, "ran though cancelled, moved or replaced: run r1 started although step 2"},
	{"a move whose first try came behind the second", func(m *made) {
		m.step(arm, done, 1, 50)
		m.step(move, unknown, 10, 60)
		m.step(move, done, 20, 80)
		m.ran(0, 61, 60)
	}, ""},
	{"the same, and it ran at the time that was before both", func(m *made) {
		m.step(arm, done, 1, 50)
		m.step(move, unknown, 10, 60)
		m.step(move, done, 20, 80)
		m.ran(0, 55, 50)
	}, "early: run r0 started 5ms before it was due"},
	{"a bare job that an earlier SET without an answer has overwritten", func(m *made) {
		m.step(bare, unknown, 1, 50)
		m.step(bare, done, 60, 90)
		m.ran(0, 95, 95)
	}, ""},
	{"a bare job that ran before the one that was acknowledged, which did not", func(m *made) {
		m.step(bare, unknown, 1, 50)
		m.step(bare, done, 60, 90)
		m.ran(0, 55, 55)
	}, "lost: armed by step [1]"},
	{"a replaced job", func(m *made) { m.step(arm, done, 1, 50); m.replace(replaced, 10, 90); m.ran(1, 90, 90) }, ""},
	{"a replaced job that ran", func(m *made) {
		m.step(arm, done, 1, 50)
		m.replace(replaced, 10, 90)
		m.ran(1, 90, 90)
		m.ran(0, 60, 50)
	}, "ran though cancelled, moved or replaced: run r0 started although step 1"},
	{"a job that came after another had started", func(m *made) {
		m.step(arm, done, 1, 50)
		m.ran(0, 51, 50)
		m.replace(done, 55, 90)
		m.ran(1, 90, 90)
	}, ""},
	{"the same, and the first never ran", func(m *made) { m.step(arm, done, 1, 50); m.replace(done, 55, 90); m.ran(1, 90, 90) }, "lost: armed by step [0]"},

	{"a job that fired twice, around a failover", func(m *made) {
		m.step(arm, done, 1, 50)
		m.call("d1", "r", 1, 0, 51, 50, endOK, "done")
		m.forgot = []span{{at(55), at(90)}}
		m.call("d2", "other", 1, 0, 95, 50, endOK, "done")
	}, ""},
	{"a job that fired twice, long after a failover", func(m *made) {
		m.step(arm, done, 1, 5000)
		m.forgot = []span{{at(55), at(90)}}
		m.call("d1", "r", 1, 0, 5000, 5000, endOK, "done")
		m.call("d2", "other", 1, 0, 5001, 5000, endOK, "done")
	}, "unexplained: step 0 fired twice"},
	{"a cancelled job that ran, around a failover", func(m *made) {
		m.step(arm, done, 1, 50)
		m.step(cancel, done, 10, 0)
		m.forgot = []span{{at(20), at(40)}}
		m.ran(0, 51, 50)
	}, ""},
	{"a job lost by a failover", func(m *made) { m.step(arm, done, 1, 50); m.forgot = []span{{at(20), at(40)}} }, "lost:"},
	{"a job whose slot was moved", func(m *made) { m.step(arm, done, 1, 50); m.moved = []span{{at(20), at(40)}}; m.ran(0, 55, 54) }, ""},
	{"a job whose slot was moved, and that ran early", func(m *made) {
		m.step(arm, done, 1, 50)
		m.moved = []span{{at(20), at(40)}}
		m.ran(0, 49, 48)
	}, "early:"},
	{"a job that fired twice", func(m *made) {
		m.step(arm, done, 1, 50)
		m.call("d1", "r", 1, 0, 51, 50, endOK, "done")
		m.call("d2", "other", 1, 0, 52, 50, endOK, "done")
	}, "unexplained: step 0 fired twice"},
	{"a run again after it was settled", twice("done", endOK, func(*made) {}), "unexplained: run r started again: it was settled as done"},
	{"a run again without a cause", twice("", endOK, func(*made) {}), "unexplained: run r started again: its daemon d1 ran on"},
	{"a run again after a kill", twice("", "", func(m *made) { m.end("d1", "killed", 60) }), ""},
	{"a run again before the kill", twice("", "", func(m *made) { m.end("d1", "killed", 200) }), "unexplained: run r started again"},
	{"a run again while its daemon is frozen", twice("", "", func(m *made) {
		m.proc("d1").froze = []span{{at(60), 0}}
		m.end("d1", "killed", 200)
	}), ""},
	{"a run again after a lost lease", twice("lost", endLease, func(m *made) { m.proc("d1").lost = []int64{at(60)} }), ""},
	{"a run that was lost though its daemon held its lease", twice("lost", endOK, func(*made) {}), "unexplained: run r started again"},
	{"a run that a frozen daemon started late, when another had ended it", func(m *made) {
		m.step(arm, done, 1, 50)
		m.call("d2", "r", 2, 0, 80, 50, endOK, "done")
		m.call("d1", "r", 1, 0, 100, 50, endOK, "lost")
		m.proc("d1").lost = []int64{at(101)}
	}, ""},
	{"a run that its own daemon starts again before it hears of the lost lease", func(m *made) {
		m.step(arm, done, 1, 50)
		m.call("d1", "r", 1, 0, 51, 50, endOK, "")
		m.proc("d1").lost = []int64{at(60)}
		m.call("d1", "r", 2, 0, 70, 50, endOK, "done")
		m.settle("d1", "r", 1, "lost")
		m.proc("d1").clean = true
	}, ""},
	{"a run that was given back", twice("returned", endShutdown, func(*made) {}), ""},
	{"a run that was given back though it had ended", twice("returned", endOK, func(*made) {}), "unexplained:"},
	{"a run that failed on purpose", twice("retried", endFailed, func(*made) {}), ""},
	{"a run that failed by itself", twice("retried", endOther, func(*made) {}), "unexplained:"},
	{"a run whose attempt does not rise", func(m *made) {
		m.step(arm, done, 1, 50)
		m.call("d1", "r", 1, 0, 51, 50, "", "")
		m.end("d1", "killed", 60)
		m.call("d2", "r", 1, 0, 100, 50, endOK, "done")
	}, "unexplained: run r started again: both are attempt 1"},
	{"a run that a daemon left unsettled", func(m *made) {
		m.step(arm, done, 1, 50)
		m.call("d1", "r", 1, 0, 51, 50, endOK, "")
		m.proc("d1").clean = true
	}, "unexplained: run r was never settled by d1"},
	{"a run with a payload of nobody's", func(m *made) { m.step(arm, done, 1, 50); m.ran(0, 51, 50); m.ran(7, 51, 50) }, "unexplained: run r7 has a payload"},
	{"a run of an id of nobody's", func(m *made) {
		m.callOf(event{id: "x", run: "r", attempt: 1, payload: "0 -"}, "d1", 50, 50, endOK, "done")
	}, "unexplained: d1: run r of \"x\""},

	{"a counter that adds up", func(m *made) { m.hits("c", 10, 0); m.counted("r1", 7); m.counted("r2", 3) }, ""},
	{"a counter that counts too few", func(m *made) { m.hits("c", 10, 1); m.counted("r1", 9) }, "counts: 10 hits were acknowledged, 1 more got no answer, and firings count 9"},
	{"a counter that counts too many", func(m *made) { m.hits("c", 10, 1); m.counted("r1", 12) }, "counts:"},
	{"a counter that may count one more", func(m *made) { m.hits("c", 10, 1); m.counted("r1", 11) }, ""},
	{"a firing that is counted once however often it ran", func(m *made) {
		m.hits("c", 7, 0)
		m.callOf(event{id: "c", run: "r", attempt: 1, count: 7}, "d1", 50, 50, "", "")
		m.end("d1", "killed", 60)
		m.callOf(event{id: "c", run: "r", attempt: 2, count: 7}, "d2", 100, 50, endOK, "done")
	}, ""},
	{"a window that ends too soon", func(m *made) {
		m.hits("c", 7, 0)
		m.callOf(event{id: "c", run: "r", attempt: 1, count: 7}, "d1", 50, 60, endOK, "done")
	}, "early: run r started 10ms before its window's end"},
}

func (m *made) replace(a answer, sent, due int64) {
	n := m.begin("j", "made", step{op: arm, replace: true, floor: at(due)})
	s := &m.jobs["j"].steps[n]
	s.sent, s.answer = at(sent), a
	if a != unknown {
		s.acked, s.due = at(sent+1), at(due)
	}
}

func (m *made) end(daemon, how string, ms int64) {
	p := m.proc(daemon)
	p.gone, p.how = at(ms), how
}

// twice is a run that starts on d1, to this end and outcome, and then on d2.
func twice(outcome, end string, meanwhile func(m *made)) func(m *made) {
	return func(m *made) {
		m.step(arm, done, 1, 50)
		m.call("d1", "r", 1, 0, 51, 50, end, outcome)
		meanwhile(m)
		m.call("d2", "r", 2, 0, 100, 50, endOK, "done")
	}
}

func TestTheCheckFindsWhatIsWrongAndNothingElse(t *testing.T) {
	for _, c := range judged {
		t.Run(c.name, func(t *testing.T) {
			m := &made{newBook(0), make(map[string]*proc)}
			c.make(m)
			problems := m.check().problems()
			found := slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, c.want) })
			if c.want == "" && len(problems) > 0 || c.want != "" && (!found || len(problems) > 1) {
				t.Errorf("found:\n%s\nwant: %q", strings.Join(problems, "\n"), c.want)
			}
		})
	}
}

// A clock of Redis's that is ahead makes nothing early or late.
func TestRedissTimesAreTakenByTheMachinesClock(t *testing.T) {
	const ahead = 5 * time.Minute
	m := &made{newBook(ahead), make(map[string]*proc)}
	due := time.UnixMilli(at(50) / int64(time.Millisecond))
	n := m.begin("j", "made", step{op: arm, floor: at(50)})
	m.answered("j", n, done, m.machine(due.Add(ahead)), false)
	m.call("d1", "r", 1, 0, 50, 50+ahead.Milliseconds(), endOK, "done")
	if problems := m.check().problems(); len(problems) > 0 {
		t.Errorf("found:\n%s", strings.Join(problems, "\n"))
	}
}

func TestWhatADaemonWritesIsRead(t *testing.T) {
	events := []event{
		{kind: started, at: 1, run: "n.1", attempt: 2, reason: "timer", count: 3, due: 4, id: "a b\n\"\xff", payload: "0 \x00"},
		{kind: ended, at: 5, run: "n.1", attempt: 2, word: endOK},
		{kind: settled, at: 6, run: "n.1", attempt: 2, word: "done"},
		{kind: leaseLost, at: 7, word: "lease lost: why"},
		{kind: degraded, at: 8},
	}
	for _, e := range events {
		line := strings.TrimSuffix(string(e.line()), "\n")
		got, err := parseEvent([]byte(line))
		if err != nil || got != e || strings.Contains(line, "\n") {
			t.Errorf("%q: %+v, %v; want %+v", line, got, err, e)
		}
		for cut := range len(line) - 1 {
			if half, err := parseEvent([]byte(line[:cut])); err == nil && half == e {
				t.Errorf("%q is read as the whole line", line[:cut])
			}
		}
	}
}

func TestADueTimeIsKnownOnceTheLastCallIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		make  func(m *made)
		due   int64
		known bool
	}{
		"armed":                     {func(m *made) { m.step(arm, done, 1, 50) }, 50, true},
		"nobody knows yet":          {func(m *made) { m.step(arm, unknown, 1, 50) }, 50, false},
		"armed at the second try":   {func(m *made) { m.step(arm, unknown, 1, 50); m.step(arm, done, 60, 90) }, 90, true},
		"being moved later":         {func(m *made) { m.step(arm, done, 1, 50); m.step(move, unknown, 10, 90) }, 90, false},
		"moved later, without word": {func(m *made) { m.step(arm, done, 1, 50); m.step(move, unknown, 10, 90); m.step(move, done, 20, 60) }, 90, true},
		"cancelled":                 {func(m *made) { m.step(arm, done, 1, 50); m.step(cancel, done, 10, 0) }, 50, true},
	} {
		m := &made{newBook(0), make(map[string]*proc)}
		c.make(m)
		if due, known := m.jobs["j"].lastDue(); due != at(c.due) || known != c.known {
			t.Errorf("%s: due %s, known %v", name, time.Unix(0, due), known)
		}
	}
}
