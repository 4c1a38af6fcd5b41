package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/record"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

// Work is what a worker's process does.
type Work struct {
	Way    string
	Env    way.Env
	Record string        // the file of a record
	Jobs   int           // that it has slots for
	Takes  time.Duration // how long each handler takes
	// Schedule are jobs that it schedules itself, for a way that lives in one process.
	Schedule []way.Jobs
}

// Do works until ctx ends.
func (w Work) Do(ctx context.Context, how way.Way) error {
	rec, err := record.Open(w.Record, w.Jobs)
	if err != nil {
		return err
	}
	defer rec.Close()
	inst, err := how.Open(ctx, w.Env)
	if err != nil {
		return err
	}
	for _, jobs := range w.Schedule {
		if err := inst.Single(ctx, jobs, 1); err != nil {
			return errors.Join(err, inst.Close())
		}
	}
	err = inst.Work(ctx, rec.Ready, w.handler(rec))
	return errors.Join(err, inst.Close())
}

// handler is what all jobs run.
func (w Work) handler(rec *record.Record) func(n int) {
	return func(n int) {
		rec.Start(n)
		if w.Takes > 0 {
			time.Sleep(w.Takes)
		}
		rec.End(n)
	}
}

// worker is one that works: a process of its own, or a part of this one.
type worker struct {
	pid  int
	end  func()        // asks it to end
	done chan struct{} // is closed when it has ended
	err  error         // why, after done
}

// stopWithin is how long a worker may take to end before it is killed.
const stopWithin = 15 * time.Second

// stop ends a worker and waits for it. A nil one has ended already.
func (w *worker) stop() error {
	if w == nil {
		return nil
	}
	w.end()
	patience := time.NewTimer(stopWithin)
	defer patience.Stop()
	select {
	case <-w.done:
		return w.err
	case <-patience.C:
	}
	if w.pid == os.Getpid() {
		return fmt.Errorf("the worker did not end within %s", stopWithin)
	}
	w.kill()
	return fmt.Errorf("the worker did not end within %s and was killed", stopWithin)
}

// kill ends a worker's process and all that it started, as a crash does.
func (w *worker) kill() {
	_ = syscall.Kill(-w.pid, syscall.SIGKILL) // it may have ended
	<-w.done
}

// work starts a worker and waits until it is ready.
func (w *world) work(ctx context.Context) error {
	ready := w.rec.Workers()
	if w.Way.Local() {
		w.worker = w.here(ctx)
	} else if err := w.spawn(Work{}); err != nil {
		return err
	}
	return w.await(ctx, func() bool { return w.rec.Workers() > ready })
}

// here starts a worker in this process.
func (w *world) here(ctx context.Context) *worker {
	ctx, cancel := context.WithCancel(ctx)
	k := &worker{pid: os.Getpid(), end: cancel, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		k.err = w.inst.Work(ctx, w.rec.Ready, Work{}.handler(w.rec))
	}()
	return k
}

// spawn starts a worker's process, with what does not follow from the world set.
func (w *world) spawn(what Work) error {
	what.Way, what.Env, what.Record, what.Jobs = w.Way.Name, w.env, w.file(), w.jobs
	cmd, err := w.Work(what)
	if err != nil {
		return err
	}
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = OwnGroup(syscall.SIGKILL)
	cmd.WaitDelay = time.Second // for what it started and left behind
	if err := cmd.Start(); err != nil {
		return err
	}
	w.worker = watch(cmd, &said)
	return nil
}

func watch(cmd *exec.Cmd, said *tail) *worker {
	k := &worker{pid: cmd.Process.Pid, done: make(chan struct{})}
	k.end = func() { _ = cmd.Process.Signal(syscall.SIGTERM) } // it may have ended
	go func() {
		defer close(k.done)
		if err := cmd.Wait(); err != nil {
			k.err = fmt.Errorf("the worker: %w: %s", err, bytes.TrimSpace(said.last))
		}
	}()
	return k
}

// poll is how often what a worker recorded is looked at.
const poll = 2 * time.Millisecond

// errEnded is the error of a worker that ended by itself.
var errEnded = errors.New("the worker has ended before it was told to")

// await waits until something that a worker records is so. It is an error if the
// worker ends first.
func (w *world) await(ctx context.Context, so func() bool) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for !so() {
		select {
		case <-ticker.C:
		case <-w.worker.done:
			if w.worker.err != nil {
				return w.worker.err
			}
			return errEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// tail keeps the last that was written.
type tail struct{ last []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 2000
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-most):]
	return len(p), nil
}
