package measure

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/record"
	"github.com/keyfuse-io/keyfuse/bench/servers"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

// stores are the servers of a measurement.
type stores []*servers.Server

// start starts servers and finds their addresses. Those that run when one does not
// start are returned beside the error.
func (l *Lab) start(ctx context.Context, needs []string) (stores, way.Env, error) {
	env := way.Env{Addrs: make(map[string]string), Dir: l.Dir}
	var all stores
	for _, name := range needs {
		server, err := servers.Start(ctx, l.Dir, name)
		if err != nil {
			return all, env, err
		}
		all = append(all, server)
		env.Addrs[name] = server.Addr
	}
	return all, env, nil
}

func (s stores) stop() error {
	var errs []error
	for _, server := range s {
		errs = append(errs, server.Stop())
	}
	return errors.Join(errs...)
}

// cpu is what all of them have used.
func (s stores) cpu() time.Duration {
	var sum time.Duration
	for _, server := range s {
		sum += server.CPU()
	}
	return sum
}

// memory is what they keep, in bytes; without any, what this process has on its heap.
func (s stores) memory(ctx context.Context) (float64, error) {
	if len(s) == 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc), nil
	}
	sum := 0.0
	for _, server := range s {
		n, err := server.Memory(ctx)
		if err != nil {
			return 0, err
		}
		sum += float64(n)
	}
	return sum, nil
}

// count counts the commands that they get until the function that it returns is called;
// servers.ErrUnknown if one can't tell.
func (s stores) count(ctx context.Context) (counted func() (float64, error), err error) {
	var all []func(context.Context) (int64, error)
	for _, server := range s {
		one, err := server.Count(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return func() (float64, error) {
		sum := 0.0
		for _, one := range all {
			n, err := one(ctx)
			if err != nil {
				return 0, err
			}
			sum += float64(n)
		}
		return sum, nil
	}, nil
}

// world is where a way is measured: servers that are new, an instance that schedules,
// and what its workers record.
type world struct {
	*Lab
	stores  stores
	env     way.Env
	inst    way.Instance
	rec     *record.Record
	jobs    int // that rec has slots for
	used    int // of those, which have been scheduled
	pending int // jobs that were scheduled for far away
	astray  int // runs of those that drain has told of
	worker  *worker
}

// open makes a world in which so many jobs are to be run. Close it, whatever happens.
func (l *Lab) open(ctx context.Context, jobs int) (w *world, err error) {
	w = &world{Lab: l, jobs: jobs}
	if w.stores, w.env, err = l.start(ctx, l.Way.Needs); err != nil {
		return w, err
	}
	if w.rec, err = record.Open(w.file(), jobs); err != nil {
		return w, err
	}
	w.inst, err = l.Way.Open(ctx, w.env)
	return w, err
}

func (w *world) file() string { return filepath.Join(w.Dir, "record") }

func (w *world) close() error {
	errs := []error{w.worker.stop()}
	if w.inst != nil {
		errs = append(errs, w.inst.Close())
	}
	errs = append(errs, w.stores.stop())
	if w.rec != nil {
		errs = append(errs, w.rec.Close())
	}
	return errors.Join(errs...)
}

// in does something in a new world, with a worker if it is to have one.
func (l *Lab) in(ctx context.Context, jobs int, working bool, do func(w *world) error) error {
	w, err := l.open(ctx, jobs)
	if err == nil && working {
		err = w.work(ctx)
	}
	if err == nil {
		err = do(w)
	}
	// What was measured stands, however it ends; but who goes on must know of it.
	return errors.Join(err, w.close())
}

// number gives so many jobs that are to run their numbers: it is the first one.
func (w *world) number(jobs int) int {
	w.used += jobs
	return w.used - jobs
}
