package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
	"github.com/keyfuse-io/keyfuse/registry"
)

// pool runs what was claimed: at most limit runs at a time, and of each task at
// most its own limit. Runs that wait for a place are few: as many as are likely
// to have one within aheadOf, so that short handlers are claimed in large
// batches and long ones are left for other nodes to take.
type pool struct {
	limit   int
	workers sync.WaitGroup

	mu       sync.Mutex
	active   int
	waiting  int
	reserved int // for claims that are under way
	bytes    int // of payloads that wait
	mean     time.Duration
	lines    []*line
	byName   map[string]*line
	turn     int    // whose turn it is among lines that wait
	first    int    // whose turn it is to come first in a claim
	full     []hint // who found no room for some task, and is told when there is some
	denied   []hint // who would have found it, but for what others have reserved
	closed   bool
	running  map[*work]struct{} // whose handlers have not returned
}

// work is a run with the partition that it is from.
type work struct {
	wire.Run
	part *partition
}

// line is a task's runs.
type line struct {
	task   registry.Task
	limit  int
	active int
	// reserved is for claims that are under way.
	reserved int
	queue    []work
	mean     time.Duration // that a run takes, weighted to the last ones
}

const (
	aheadOf      = 20 * time.Millisecond
	maxAhead     = 1000     // runs
	maxWaitBytes = 32 << 20 // of payloads beyond which nothing is claimed ahead
)

func newPool(limit int, reg *registry.Registry) *pool {
	p := &pool{
		limit: limit, byName: make(map[string]*line), running: make(map[*work]struct{}),
	}
	for _, name := range reg.Names() {
		task, _ := reg.Lookup(name)
		l := &line{task: task, limit: limit}
		if task.Options.Concurrency > 0 {
			l.limit = min(limit, task.Options.Concurrency)
		}
		p.lines = append(p.lines, l)
		p.byName[name] = l
	}
	return p
}

// room is how many runs may be claimed, in all and of each task.
type room struct {
	runs  int
	wants []wire.Want
	by    hint // whose it is
}

// reserve keeps room for a claim of most runs, until add. The tasks come
// in another order for each claim, since the first ones get the odd shares. If there
// is not room for every task, more is given when there is some.
func (p *pool) reserve(most int, more hint) room {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.lines) == 0 {
		return room{}
	}
	total, alone := p.spare(), p.reserved == 0
	if total > p.reserved {
		p.first++
	}
	r := room{runs: max(0, min(total-p.reserved, most)), by: more}
	free := 0 // lines that would have room if nobody had reserved any
	for i := range p.lines {
		l := p.lines[(i+p.first)%len(p.lines)]
		n := l.limit - l.active - len(l.queue) + p.ahead(l.limit, l.mean)
		if n > 0 {
			free++
		}
		if n = min(n-l.reserved, claimRuns); n > 0 && r.runs > 0 {
			r.wants = append(r.wants, wire.Want{Task: l.task.Name, Runs: n})
			l.reserved += n
		}
	}
	if len(r.wants) == 0 {
		r.runs = 0
	}
	p.reserved += r.runs
	if total <= 0 || free < len(p.lines) {
		p.full = enlist(p.full, more)
	}
	if !alone && total > 0 && (r.runs == 0 || len(r.wants) < free) {
		p.denied = enlist(p.denied, more)
	}
	return r
}

// unreserve ends a reservation, and tells those who could not have that room. Whoever
// had it is told by the others: it would ask again without end.
func (p *pool) unreserve(r room) {
	p.reserved -= r.runs
	for _, want := range r.wants {
		p.byName[want.Task].reserved -= want.Runs
	}
	self := slices.Contains(p.denied, r.by)
	p.denied = slices.DeleteFunc(p.denied, func(h hint) bool { return h == r.by })
	giveAll(&p.denied)
	if self {
		p.denied = append(p.denied, r.by)
	}
}

func enlist(hints []hint, h hint) []hint {
	if slices.Contains(hints, h) {
		return hints
	}
	return append(hints, h)
}

// giveAll tells those who wait, the longest first.
func giveAll(hints *[]hint) {
	for _, h := range *hints {
		h.give()
	}
	*hints = (*hints)[:0]
}

// spare is how many more runs are likely to have a place soon. Those that wait
// for their own task's limit keep no place from others.
func (p *pool) spare() int {
	n := p.limit - p.active + p.ahead(p.limit, p.mean)
	for _, l := range p.lines {
		if l.limit == p.limit {
			n -= len(l.queue)
		} else {
			n -= min(len(l.queue), l.limit-l.active)
		}
	}
	return n
}

// ahead is how many runs are likely to end within aheadOf.
func (p *pool) ahead(limit int, mean time.Duration) int {
	if mean == 0 || p.bytes > maxWaitBytes {
		return 0
	}
	return int(min(time.Duration(limit)*aheadOf/mean, maxAhead))
}

// add takes the runs that were claimed for a reservation, in their order.
func (p *pool) add(r room, part *partition, runs []wire.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, run := range runs {
		l := p.byName[run.Task]
		l.queue = append(l.queue, work{run, part})
		p.waiting++
		p.bytes += len(run.Payload)
	}
	for p.active < p.limit {
		l, run, ok := p.take()
		if !ok {
			break
		}
		p.workers.Go(func() { p.work(l, run) })
	}
	p.unreserve(r)
}

// take picks the next run that has a place. Lines take turns.
func (p *pool) take() (*line, work, bool) {
	if p.waiting == 0 {
		return nil, work{}, false
	}
	for i := range p.lines {
		at := (p.turn + i) % len(p.lines)
		l := p.lines[at]
		if len(l.queue) == 0 || l.active >= l.limit {
			continue
		}
		run := l.queue[0]
		l.queue[0] = work{}
		l.queue = l.queue[1:]
		p.waiting--
		p.bytes -= len(run.Payload)
		p.active++
		l.active++
		p.turn = at + 1
		return l, run, true
	}
	return nil, work{}, false
}

// work executes runs for as long as there are any.
func (p *pool) work(l *line, run work) {
	for ok := true; ok; {
		l, run, ok = p.one(l, run)
	}
}

// one executes a run and picks the next. A handler that ends its goroutine
// takes this worker with it; another one then goes on.
func (p *pool) one(l *line, run work) (next *line, nextRun work, ok bool) {
	returned := false
	key := &run
	p.mu.Lock()
	p.running[key] = struct{}{}
	p.mu.Unlock()
	start := time.Now()
	defer func() {
		next, nextRun, ok = p.finish(l, key, time.Since(start))
		if !returned && ok {
			l, run := next, nextRun
			p.workers.Go(func() { p.work(l, run) })
		}
	}()
	run.part.run(l.task, run.Run)
	returned = true
	return
}

// finish frees a run's place, and gives it to the next run.
func (p *pool) finish(l *line, run *work, took time.Duration) (*line, work, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, run)
	p.active--
	l.active--
	l.mean, p.mean = blend(l.mean, took), blend(p.mean, took)
	// Not for each single place: a claim is worth its round trip.
	ahead := p.ahead(p.limit, p.mean)
	if len(p.full) > 0 && p.spare() >= max(1, min(ahead, p.limit)/2) {
		giveAll(&p.full)
	}
	return p.take()
}

// blend is an average in which each value weighs an eighth when it comes.
func blend(mean, took time.Duration) time.Duration {
	took = max(took, 1)
	if mean == 0 {
		return took
	}
	return mean + (took-mean)/8
}

// close ends the intake and returns the runs that have not been started.
func (p *pool) close() []work {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var runs []work
	for _, l := range p.lines {
		runs = append(runs, l.queue...)
		l.queue = nil
	}
	p.waiting, p.bytes = 0, 0
	return runs
}

// left are the runs whose handlers have not returned.
func (p *pool) left() []work {
	p.mu.Lock()
	defer p.mu.Unlock()
	runs := make([]work, 0, len(p.running))
	for run := range p.running {
		runs = append(runs, *run)
	}
	slices.SortFunc(runs, func(a, b work) int { return a.Due.Compare(b.Due) })
	return runs
}
