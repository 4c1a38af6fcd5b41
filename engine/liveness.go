package engine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// liveness knows whether events arrive, by a canary key of the node's own whose
// expiry must be heard between two heartbeats. A connection can be open and
// silent for good: half-open, on a demoted master, refused its subscription,
// or on a server that lost its flags.
type liveness struct {
	tell   func(reason string)
	canary func(took time.Duration) // may be nil

	mu      sync.Mutex
	beat    time.Time // when the last heartbeat began
	beats   int       // heartbeats since the canary was last heard
	silent  int       // times that silence was noticed since then
	why     string
	silence *func()

	stirred atomic.Bool // any expiry was heard of since the last check
}

// canaryBeats is how many heartbeats may pass without the canary: one lays it,
// the next lets it expire, and until the one after that it must be heard.
const canaryBeats = 2

func (l *liveness) beating() {
	l.mu.Lock()
	l.beats++
	l.beat = time.Now()
	l.mu.Unlock()
}

// heard notes the canary.
func (l *liveness) heard() {
	l.mu.Lock()
	l.beats, l.silent = 0, 0
	took, beaten := time.Since(l.beat), !l.beat.IsZero() // one that a dead node laid may come before
	l.mu.Unlock()
	if l.canary != nil && beaten {
		l.canary(took)
	}
	l.set("")
}

// stir notes any event. It is called for each, and so does little.
func (l *liveness) stir() {
	if !l.stirred.Load() {
		l.stirred.Store(true)
	}
}

// stillSilent says that subscribing anew has not helped so far: then another
// sweep for it would find no more than the next one that comes anyway.
func (l *liveness) stillSilent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent > 1
}

// check breaks the subscription if the canary was not heard for too long.
func (l *liveness) check() {
	l.mu.Lock()
	if l.stirred.Swap(false) { // in a flood the canary is far behind
		l.beats = 0
	}
	silent := l.beats >= canaryBeats && l.silence != nil
	silence := l.silence
	if silent {
		l.beats = 0
		l.silent++
	}
	l.mu.Unlock()
	if silent {
		l.set(errSilent.Error())
		(*silence)()
	}
}

// onSilence says what to do when events stop coming, until the function that it
// returns is called.
func (l *liveness) onSilence(f func()) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := &f
	l.silence, l.beats = mine, 0
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.silence == mine { // else another subscription has begun before this one could end
			l.silence = nil
		}
	}
}

// set changes why events do not come; "" if they do.
func (l *liveness) set(why string) {
	l.mu.Lock()
	changed := (l.why == "") != (why == "")
	l.why = why
	l.mu.Unlock()
	if changed {
		l.tell(why)
	}
}

func (l *liveness) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// deafness is which partitions hear no events, and why: the log says it once for
// all of them.
type deafness struct {
	mu  sync.Mutex
	why map[*partition]string
}

// set notes why a partition hears nothing, "" if it does. It gives a reason that
// holds for any of them, and whether that begins or ends.
func (d *deafness) set(p *partition, why string) (now string, changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := len(d.why)
	if d.why == nil {
		d.why = make(map[*partition]string)
	}
	if why == "" {
		delete(d.why, p)
	} else {
		d.why[p] = why
	}
	for _, now = range d.why {
		break
	}
	return now, (before == 0) != (len(d.why) == 0)
}

// reason is why events do not come, and for how many partitions.
func (d *deafness) reason() (why string, parts int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, why = range d.why {
		break
	}
	return why, len(d.why)
}

func (p *partition) tellDegraded(why string) {
	if why == "" {
		p.swept.ask(p.redisNow())
	}
	p.look.give()
	now, changed := p.deaf.set(p, why)
	if !changed {
		return
	}
	if now == "" {
		p.log.Info("events come again")
	} else {
		p.log.Warn("degraded: no events; jobs in the index run on time, bare ones are found by the sweep", "why", now)
	}
	if p.cfg.Observer.Degraded != nil {
		p.cfg.Observer.Degraded(now)
	}
}

// readiness tells once that the engine is ready: that it has subscribed and claimed
// in all partitions, or after a while in some.
type readiness struct {
	mu                  sync.Mutex
	subscribed, claimed map[*partition]bool
	hurried, told       bool
}

// readyPatience is how long partitions are waited for whose server is away.
const readyPatience = 10 * time.Second

func (r *readiness) isSubscribed(p *partition) { r.note(p, &r.subscribed) }
func (r *readiness) hasClaimed(p *partition)   { r.note(p, &r.claimed) }

func (r *readiness) note(p *partition, which *map[*partition]bool) {
	r.mu.Lock()
	if *which == nil {
		*which = make(map[*partition]bool)
	}
	(*which)[p] = true
	r.mu.Unlock()
	r.tell(p.Engine)
}

// hurry makes it enough that some partitions are ready.
func (r *readiness) hurry(e *Engine) {
	r.mu.Lock()
	r.hurried = true
	r.mu.Unlock()
	r.tell(e)
}

func (r *readiness) tell(e *Engine) {
	r.mu.Lock()
	ready := make([]*partition, 0, len(e.parts))
	for _, p := range e.parts {
		if r.subscribed[p] && r.claimed[p] {
			ready = append(ready, p)
		}
	}
	tell := !r.told && (len(ready) == len(e.parts) || r.hurried && len(ready) > 0)
	r.told = r.told || tell
	r.mu.Unlock()
	if !tell {
		return
	}
	name, _ := ready[0].node.current()
	attrs := []any{
		"node", wire.EngineOf(name), "tasks", len(e.tasks), "concurrency", e.cfg.Concurrency,
		"clock_offset", ready[0].clock.skew().Round(time.Millisecond),
	}
	if len(ready) < len(e.parts) {
		attrs = append(attrs, "partitions", fmt.Sprintf("%d of %d", len(ready), len(e.parts)))
	}
	e.log.Info("ready", attrs...)
	if e.cfg.Observer.Ready != nil {
		e.cfg.Observer.Ready()
	}
}
