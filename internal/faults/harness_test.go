package faults

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// harness is one run.
type harness struct {
	t     testing.TB
	opts  options
	site  site
	book  *book
	fleet *fleet
	load  *load
	dir   string // of records and logs

	mended   time.Time // when the fault of now was over, if it says so
	suffered []suffered
	problems []string // that are about no single job
	begun    time.Time
}

// suffered is a fault that has been, and how it ended.
type suffered struct {
	planned
	overdue   int           // jobs that were due by its end and had not run
	recovered time.Duration // after its end, until all of them had
}

// Everything overdue must run so soon after a fault.
const recoverWithin = 15 * time.Second

// patience is how long the harness waits for what may be late, to see how late.
const patience = 45 * time.Second

func newHarness(t testing.TB, opts options, s site) *harness {
	h := &harness{t: t, opts: opts, site: s, book: newBook(s.skew), begun: time.Now()}
	h.dir = opts.recordDir(t)
	h.fleet = &fleet{
		dir: h.dir, conns: s.daemons, book: h.book,
		places: make([]*proc, opts.daemons), starts: make([]int, opts.daemons),
		cfg: daemonConfig{Lease: opts.lease, Grace: 2 * time.Second},
	}
	t.Cleanup(h.close)
	return h
}

// close ends the daemons, and keeps what a failed run leaves.
func (h *harness) close() {
	h.fleet.close()
	for _, p := range h.fleet.unread {
		p.tail.close()
	}
	switch {
	case h.opts.dir != "":
	case h.t.Failed():
		h.t.Logf("records and logs of the daemons are in %s", h.dir)
	default:
		if err := os.RemoveAll(h.dir); err != nil {
			h.t.Error(err)
		}
	}
}

// run is the load under the faults, until all of it has run.
func (h *harness) run() {
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	rng := rand.New(rand.NewPCG(h.opts.seed, 1))
	plan := drawPlan(rng, h.opts.only(h.site.faults), h.opts.faults, h.opts.lease)
	h.t.Logf("seed %d: %d jobs, %d daemons, lease %s, %d faults", h.opts.seed, h.opts.jobs, h.opts.daemons, h.opts.lease, len(plan))

	for place := range h.fleet.places {
		h.must(h.fleet.launch(place))
	}
	h.startLoad(rand.New(rand.NewPCG(h.opts.seed, 2)))
	h.await("the daemons to be ready", func() bool { return h.ready() == h.opts.daemons })
	var loading sync.WaitGroup
	defer loading.Wait()
	defer cancel() // before waiting for the load
	over := make(chan struct{})
	loading.Go(func() {
		defer close(over)
		h.load.run(ctx)
	})
	for i, p := range plan {
		h.load.budget.set(h.opts.jobs * (i + 1) / len(plan))
		h.suffer(i, p)
	}
	h.load.budget.set(h.opts.jobs)
	h.t.Logf("%s the faults are over", h.elapsed())
	h.await("the load to end", func() bool { return isClosed(over) })
	h.t.Logf("%s the load is over", h.elapsed())
	h.settle()
}

// startLoad connects the load, and defines its thresholds.
func (h *harness) startLoad(rng *rand.Rand) {
	rdb := h.site.load.open()
	once := h.site.load
	once.Once = true
	raw := once.open()
	h.t.Cleanup(func() {
		_ = rdb.Close() // nothing comes of an error any more
		_ = raw.Close()
	})
	jobs, err := client.New(rdb, client.Config{WaitReplicas: h.site.confirm})
	h.must(err)
	space, err := wire.NewSpace(raw)
	h.must(err)
	h.load = &load{
		book: h.book, jobs: jobs, raw: space, confirm: h.site.confirm, rng: rng, total: h.opts.jobs, budget: newBudget(),
		spread: min(2*h.opts.lease, recoverWithin),
		pace:   h.slotTime() * time.Duration(h.opts.faults) / time.Duration(h.opts.jobs),
	}
	h.must(h.load.define(h.t.Context()))
}

// slotTime is how long a fault takes with all that belongs to it, about: the
// load is paced by it.
func (h *harness) slotTime() time.Duration { return 1500*time.Millisecond + h.opts.lease/3 }

// suffer lets a fault happen, and waits until everything overdue has run.
func (h *harness) suffer(i int, p planned) {
	h.calm(200 * time.Millisecond)
	h.t.Logf("%s fault %d/%d: %s", h.elapsed(), i+1, h.opts.faults, p)
	h.mended = time.Time{}
	var heals []func() error
	rng, end := rand.New(rand.NewPCG(p.seed, 0)), time.Now().Add(p.hold)
	for _, f := range p.faults {
		heal, err := f.apply(h, rng, p.hold)
		if err != nil {
			h.problem("fault %d (%s) could not be made: %s: %v", i+1, p, f.name, err)
		}
		heals = append(heals, heal)
	}
	h.calm(time.Until(end))
	for _, heal := range slices.Backward(heals) {
		if err := heal(); err != nil {
			h.problem("fault %d (%s) could not be mended: %v", i+1, p, err)
		}
	}
	h.recover(i, p, cmp.Or(h.mended, time.Now()))
}

// recover waits until everything has run that was overdue at the end of a fault.
func (h *harness) recover(i int, p planned, mended time.Time) {
	overdue := h.overdue(mended)
	if !h.watch(patience, func() bool { return h.book.areServed(overdue) }) {
		h.problem("%s after fault %d (%s), these had not run:\n%s", patience, i+1, p, h.book.describeOpen(overdue))
	}
	s := suffered{p, len(overdue), h.book.servedAfter(overdue, mended)}
	if s.recovered > recoverWithin {
		h.problem("after fault %d (%s) it took %s until everything overdue had run", i+1, p, s.recovered)
	}
	h.t.Logf("%s fault %d/%d: %d jobs were overdue, the last one ran %s after it", h.elapsed(), i+1, h.opts.faults, s.overdue, s.recovered.Round(time.Millisecond))
	h.suffered = append(h.suffered, s)
}

// settle waits until all that is acknowledged has run, Redis is empty, and the
// daemons hear events.
func (h *harness) settle() {
	h.watch(patience, func() bool { return h.book.countOpen() == 0 })
	var left string
	if !h.watch(patience, func() bool { left = h.left(); return left == "" }) {
		h.problem("left in Redis: %s", left)
	}
	if !h.watch(patience, func() bool { return len(h.deaf()) == 0 }) {
		h.problem("no events come to %q", h.deaf())
	}
}

// end lets the daemons end.
func (h *harness) end() {
	for _, place := range h.fleet.running() {
		if err := h.fleet.term(place); err != nil {
			h.problem("%v", err)
		}
	}
	h.poll()
}

// deaf are the daemons that say that no events come.
func (h *harness) deaf() []string {
	var names []string
	h.book.locked(func() {
		for _, place := range h.fleet.running() {
			if p := h.fleet.places[place]; p.deaf != "" {
				names = append(names, p.name+": "+p.deaf)
			}
		}
	})
	return names
}

// watch reads what the daemons write until a condition holds, and says whether
// it came to that in time.
func (h *harness) watch(within time.Duration, until func() bool) bool {
	end := time.Now().Add(within)
	for {
		h.poll()
		if until() {
			return true
		}
		if time.Now().After(end) || !pause(h.t.Context(), pollEvery) {
			return false
		}
	}
}

const pollEvery = 20 * time.Millisecond

// calm lets time pass.
func (h *harness) calm(d time.Duration) {
	h.watch(d, func() bool { return false })
}

// await is watch for what must come.
func (h *harness) await(what string, until func() bool) {
	h.t.Helper()
	// The load may have as much left to do as the whole run took so far.
	if !h.watch(patience+time.Since(h.begun), until) {
		h.t.Fatalf("waited in vain for %s; records and logs are in %s", what, h.dir)
	}
}

// poll reads what the daemons have written since.
func (h *harness) poll() {
	h.t.Helper()
	for _, name := range h.fleet.crashed() {
		h.t.Fatalf("a daemon ended by itself: %s; its log is in %s", name, h.dir)
	}
	h.book.locked(func() {
		h.fleet.unread = slices.DeleteFunc(h.fleet.unread, func(p *proc) bool {
			h.must(p.tail.read(func(e event) error { return h.book.take(p, e) }))
			if p.gone != 0 {
				p.tail.close()
			}
			return p.gone != 0
		})
	})
}

func (h *harness) ready() int {
	n := 0
	h.book.locked(func() {
		for _, p := range h.fleet.places {
			if p != nil && p.isLive {
				n++
			}
		}
	})
	return n
}

func (h *harness) elapsed() time.Duration { return time.Since(h.begun).Round(100 * time.Millisecond) }

func (h *harness) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.t.Logf("%s %s", h.elapsed(), text)
	h.problems = append(h.problems, text)
}

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// recordDir makes the directory for a run's records.
func (o options) recordDir(t testing.TB) string {
	t.Helper()
	if o.dir != "" {
		dir := filepath.Join(o.dir, strings.ReplaceAll(t.Name(), "/", "_"))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dir, err := os.MkdirTemp("", "keyfuse-faults-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
