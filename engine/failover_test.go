package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// load schedules jobs all the while, each until a replica is known to have it: so
// none of them may be lost with its master.
type load struct {
	w    *world
	jobs *client.Client
	stop func() // ends it, and waits until its last jobs are confirmed

	mu    sync.Mutex
	tries map[string]int       // how often each job was set until it was confirmed
	due   map[string]time.Time // when it was due then
	errs  map[string]int       // what was answered meanwhile
}

// startLoad begins with some jobs of both kinds that are due after a failover.
func (w *world) startLoad() *load {
	w.Helper()
	jobs, err := client.New(w.open(), client.Config{WaitReplicas: 1, WaitTimeout: time.Second / 2})
	if err != nil {
		w.Fatal(err)
	}
	l := &load{w: w, jobs: jobs, tries: make(map[string]int), due: make(map[string]time.Time), errs: make(map[string]int)}
	ctx, end := context.WithCancel(w.Context())
	var loading sync.WaitGroup
	l.stop = sync.OnceFunc(func() { end(); loading.Wait() })
	w.Cleanup(l.stop)
	for kind, set := range map[string]func(string, time.Duration) error{"own": l.own, "bare": l.bare} {
		for i := range 20 {
			l.confirm(fmt.Sprint(kind, "-later", i), 8*time.Second, set)
		}
		loading.Go(func() {
			pace := time.NewTicker(5 * time.Millisecond)
			defer pace.Stop()
			for i := 0; ctx.Err() == nil; i++ {
				l.confirm(fmt.Sprint(kind, i), w.span, set)
				<-pace.C
			}
		})
	}
	return l
}

func (l *load) confirm(id string, in time.Duration, set func(string, time.Duration) error) {
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for end := time.Now().Add(time.Minute); ; <-pace.C {
		err := set(id, in)
		l.mu.Lock()
		l.tries[id]++
		l.due[id] = time.Now().Add(in)
		if err != nil {
			l.errs[err.Error()]++
		}
		l.mu.Unlock()
		switch {
		case err == nil:
			return
		case time.Now().After(end):
			l.w.Errorf("%s is not confirmed within a minute: %v", id, err)
			return
		}
	}
}

func (l *load) own(id string, in time.Duration) error {
	s, err := l.jobs.Schedule(l.w.Context(), client.Spec{ID: id, Task: "mail", In: in, IfExists: client.Keep})
	if err == nil && s.Replicas < 1 {
		l.w.Errorf("%s is confirmed by %d replicas", id, s.Replicas)
	}
	return err
}

// bare is what any client may do: WAIT counts for what its own connection wrote.
func (l *load) bare(id string, in time.Duration) error {
	server, err := l.w.space.Of(id).Server(l.w.Context())
	if err != nil {
		return err
	}
	var wait *redis.Cmd
	_, err = server.Pipelined(l.w.Context(), func(p redis.Pipeliner) error {
		p.Set(l.w.Context(), l.w.class(id), "mail", 0)
		p.Set(l.w.Context(), l.w.fuse(id), id, in)
		wait = p.Do(l.w.Context(), "WAIT", 1, 500)
		return nil
	})
	if redis.HasErrorPrefix(err, "MOVED") { // which only a cluster's client follows by itself
		l.w.space.Refresh(l.w.Context())
	}
	if err != nil {
		return err
	}
	if n, err := wait.Int(); err != nil || n < 1 {
		return fmt.Errorf("%d replicas have it: %w", n, errors.Join(err, client.ErrUnconfirmed))
	}
	return nil
}

// tally compares what ran with what was confirmed.
type tally struct {
	*load
	// calm is when the failover was over: a job that is due later runs once for each
	// time that it was set. One that was due before may have run on the old master,
	// which the new one never heard of.
	calm    time.Time
	ran     map[string]int
	missing map[string]bool
	again   int // runs that the failover explains
	latest  time.Duration
}

func (l *load) tally(calm time.Time) *tally {
	t := &tally{load: l, calm: calm, ran: make(map[string]int), missing: make(map[string]bool)}
	for id := range l.tries {
		t.missing[id] = true
	}
	return t
}

func (t *tally) note(f engine.Firing) {
	if f.Outcome != engine.Done || f.Job.Task != "mail" {
		return
	}
	id := f.Job.ID
	t.ran[id]++
	delete(t.missing, id)
	t.latest = max(t.latest, f.Late)
	switch {
	case t.ran[id] <= t.tries[id]:
	case t.due[id].After(t.calm):
		t.w.Errorf("%s ran %d times, was set %d times: %+v", id, t.ran[id], t.tries[id], f)
	default:
		t.again++
	}
}

// all waits until each job that was confirmed has run.
func (t *tally) all(n *node) {
	t.w.Helper()
	for len(t.missing) > 0 {
		timer := time.NewTimer(t.w.patience())
		select {
		case f := <-n.firings:
			t.note(f)
		case <-timer.C:
			t.w.Fatalf("%d of %d jobs are lost: %v", len(t.missing), len(t.tries), slices.Sorted(maps.Keys(t.missing)))
		}
		timer.Stop()
	}
}

// hears waits until a bare job is found by its event.
func (t *tally) hears(n *node) {
	t.w.Helper()
	for i := 0; ; i++ {
		id := fmt.Sprint("heard", i)
		t.tries[id] = 1
		t.w.setBare(id, "mail", t.w.span)
		f := n.fired()
		for t.note(f); f.Job.ID != id; t.note(f) {
			f = n.fired()
		}
		if f.Source == "event" {
			return
		}
	}
}

// survives is what must hold under load when another server becomes the master:
// nothing confirmed is lost, the silence is told and ends, events are heard from the
// new master, and the log is short. fail returns when all servers are well again.
func (w *world) survives(fail func()) {
	w.Helper()
	log := &record{}
	n := w.start(tasks(map[string]registry.Func{"mail": func(_ context.Context, job registry.Job) error {
		if early := time.Until(job.Due); early > 0 { // Redis's clock is this one
			w.Errorf("%s ran %s early", job.ID, early)
		}
		return nil
	}}), engine.Config{Logger: log.logger()})
	l := w.startLoad()
	before := log.lines.Load()
	fail()
	if why := await(w, n.degraded, "silence to be noticed"); why == "" {
		w.Error("degraded without a reason")
	}
	for await(w, n.degraded, "events to come again") != "" {
	}
	calm := time.Now().Add(w.lease)
	ended := make(chan struct{})
	time.AfterFunc(w.lease+5*w.span, func() { close(ended) })
	await(w, ended, "jobs that are due in calm")
	l.stop()
	t := l.tally(calm)
	t.all(n)
	t.hears(n)
	if lines := log.lines.Load() - before; lines > 20 {
		w.Errorf("%d lines in the log", lines)
	}
	w.Logf("%d jobs confirmed, %d ran again, at most %s late; errors: %v; %d lines in the log:\n%s",
		len(t.tries), t.again, t.latest, t.errs, log.lines.Load()-before, log)
}

// confirmsLater checks what is answered while the only replica of an id is away.
func (w *world) confirmsLater(id string, leave, back func()) {
	w.Helper()
	w.connect(client.Config{WaitReplicas: 1, WaitTimeout: 200 * time.Millisecond})
	spec := client.Spec{ID: id, Task: "mail", In: time.Hour}
	leave()
	s, err := w.jobs.Schedule(w.Context(), spec)
	if !errors.Is(err, client.ErrUnconfirmed) || s.Replicas != 0 || s.Due.IsZero() {
		w.Errorf("without the replica: %+v, %v", s, err)
	}
	if jobs, err := w.jobs.Get(w.Context(), id); err != nil || len(jobs) != 1 || !jobs[0].Due.Equal(s.Due) {
		w.Errorf("held: %+v, %v", jobs, err)
	}
	spec.IfExists = client.Keep
	if s, err := w.jobs.Schedule(w.Context(), spec); !errors.Is(err, client.ErrUnconfirmed) || !s.Kept {
		w.Errorf("asked again without the replica: %+v, %v", s, err)
	}
	back()
	w.until("the replica to confirm", func() bool {
		again, err := w.jobs.Schedule(w.Context(), spec)
		return err == nil && again.Kept && again.Replicas == 1 && again.Due.Equal(s.Due)
	})
}
