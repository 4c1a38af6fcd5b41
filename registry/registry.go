// Package registry maps task names to the Go code that runs them.
//
// A Registry is filled while a program starts and only read afterwards:
// registering the same name twice, or a name that is no task name, is a
// mistake in the program and panics at once. Looking up a name that nobody
// registered is ordinary at run time and answers false: another node may
// serve that task.
//
// What a handler returns decides what becomes of its run:
//
//	nil                  done; the run is removed
//	any other error      retried with backoff, dead after the last attempt
//	RetryAfter(d, err)   retried after d instead; it counts as an attempt
//	Dead(err)            to the dead letters at once
//	Discard(err)         dropped: logged, neither retried nor kept
//	a panic              as an error, with the stack in the log
//
// The package imports nothing but the standard library, so that the code that
// defines tasks need not know Redis or the engine.
package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Reason says why a run was fired.
type Reason string

// The reasons a run can have.
const (
	ReasonTimer     Reason = "timer"     // its due time came
	ReasonThreshold Reason = "threshold" // its counter reached the threshold
	ReasonTimeout   Reason = "timeout"   // its counter's window ended first
	ReasonManual    Reason = "manual"    // somebody fired it by hand
)

// Job is one run of a job, as its handler sees it.
type Job struct {
	ID      string // the Redis key; any bytes, so hostile input to whatever shows it
	Task    string
	Payload []byte // as it was scheduled, byte for byte; shared by nobody else

	// RunID names this firing: the same for every attempt, different for every
	// firing, and so the key to make effects idempotent by.
	RunID string
	// Attempt counts from 1 and is the fencing token: of two attempts of one
	// run, the higher one is the rightful one.
	Attempt int
	Due     time.Time // when it was due, to the millisecond
	Reason  Reason
	Count   int64 // hits counted, for a threshold's firing; else 0
	// Trace is the traceparent that was given when the job was scheduled (W3C Trace
	// Context); empty if none was.
	Trace string
}

// Handler runs a job. It must return soon after ctx ends, which happens at the
// task's timeout, when the lease is lost (another node may then run the job),
// and at the end of a shutdown's grace; context.Cause says which.
type Handler interface {
	Handle(ctx context.Context, job Job) error
}

// Func is a function as a Handler.
type Func func(ctx context.Context, job Job) error

// Handle calls f.
func (f Func) Handle(ctx context.Context, job Job) error { return f(ctx, job) }

// Task is a registered task.
type Task struct {
	Name    string
	Handler Handler
	Options Options // completed: no field is zero that has a default
}

// Registry holds tasks by name. The zero value is empty and ready to use.
type Registry struct {
	mu    sync.RWMutex
	tasks map[string]Task
}

// New returns an empty registry.
func New() *Registry { return &Registry{} }

// Register adds a task. It panics if the name is taken or is no task name (see
// CheckName), if h is nil, or if opts make no sense: all are mistakes in the
// program, best seen when it starts.
func (r *Registry) Register(name string, h Handler, opts Options) {
	if err := CheckName(name); err != nil {
		panic("registry: " + err.Error())
	}
	if f, ok := h.(Func); h == nil || ok && f == nil {
		panic(fmt.Sprintf("registry: task %q has a nil handler", name))
	}
	completed, err := opts.complete()
	if err != nil {
		panic(fmt.Sprintf("registry: task %q: %v", name, err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.tasks[name]; taken {
		panic(fmt.Sprintf("registry: task %q is registered twice", name))
	}
	if r.tasks == nil {
		r.tasks = make(map[string]Task)
	}
	r.tasks[name] = Task{Name: name, Handler: h, Options: completed}
}

// Lookup returns the task of that name, and whether there is one.
func (r *Registry) Lookup(name string) (Task, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.tasks[name]
	return t, ok
}

// Names returns the names of all tasks, sorted.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.tasks))
}
