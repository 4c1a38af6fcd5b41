// Package way says what a way to run delayed tasks is, so that all of them can be
// given the same work and be measured alike.
package way

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Way is one way to run delayed tasks.
type Way struct {
	Name string // as the tables have it: short, lower case
	What string // a line that says how it works and what it was set to
	// Needs names the servers of package servers that it uses; empty for what lives
	// in one process.
	Needs []string
	// Grain is how finely it knows due times; zero is as finely as a millisecond. The
	// due times that it is given are multiples of it.
	Grain time.Duration
	// InOrder: jobs run in the order in which they were scheduled, whatever their due
	// times. It is given them in the order of those.
	InOrder bool
	// OneDelay: it needs something of its own for each delay, so that people give it a
	// few. Jobs that only wait all have the same.
	OneDelay bool
	// Floor: it only schedules, as the least that scheduling can take; its jobs never
	// run, and Work is never called.
	Floor bool
	// Open makes an instance that schedules, works, or both.
	Open func(ctx context.Context, env Env) (Instance, error)
}

// Env is what an instance finds: addresses of servers by their names in package
// servers, and a folder of its own.
type Env struct {
	Addrs map[string]string // redis: host:port; postgres, rabbitmq: a URL; beanstalkd: host:port
	Dir   string            // for files; in its process's temporary folder
}

// Local says that it lives in one process: the same instance must schedule and work,
// and what it knows is gone with its process.
func (w Way) Local() bool { return len(w.Needs) == 0 }

// Instance is a way at work in one process.
type Instance interface {
	// Single schedules each job with a call of its own, by so many callers at a
	// time (1 or more). It returns when all were answered.
	Single(ctx context.Context, jobs Jobs, callers int) error
	// Bulk schedules the jobs the fastest way that there is. ErrNoBulk if there is
	// none but Single by many callers.
	Bulk(ctx context.Context, jobs Jobs) error
	// Work calls run for each job that is due, at most Workers of them at a time,
	// until ctx ends. It calls ready once when jobs that are due from now on are run. It
	// returns nil when ctx has ended.
	Work(ctx context.Context, ready func(), run func(n int)) error
	// Close ends what Open began.
	Close() error
}

// Workers is how many jobs a worker runs at a time, in every way that can be told.
const Workers = 64

// Jobs are so many jobs with consecutive numbers: the job From+i is due at First +
// i×Step.
type Jobs struct {
	From, Count int
	First       time.Time
	Step        time.Duration
}

// Job is one of them.
type Job struct {
	N   int
	Due time.Time
}

// Job is the i-th.
func (j Jobs) Job(i int) Job {
	return Job{N: j.From + i, Due: j.First.Add(time.Duration(i) * j.Step)}
}

// Slice is those from the i-th to before the k-th.
func (j Jobs) Slice(i, k int) Jobs {
	return Jobs{From: j.From + i, Count: k - i, First: j.Job(i).Due, Step: j.Step}
}

// Chunks calls do with at most most of the jobs at a time.
func (j Jobs) Chunks(most int, do func(chunk Jobs) error) error {
	for i := 0; i < j.Count; i += most {
		if err := do(j.Slice(i, min(i+most, j.Count))); err != nil {
			return err
		}
	}
	return nil
}

// Each calls do once for each job, by so many callers. It returns the first error, and
// then does not go on.
func (j Jobs) Each(ctx context.Context, callers int, do func(ctx context.Context, job Job) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calling sync.WaitGroup
	for c := range callers {
		calling.Go(func() {
			for i := c; i < j.Count && ctx.Err() == nil; i += callers {
				if err := do(ctx, j.Job(i)); err != nil {
					cancel(err)
				}
			}
		})
	}
	calling.Wait()
	return context.Cause(ctx)
}

// Payload is what every job carries: 64 bytes.
const Payload = `{"order":42,"customer":"c-1234567890","action":"cancel","n":1}  `

// Task is the name of the only task.
const Task = "cancel-order"

const idPrefix, idDigits = "order:", 14

// ID is the id of a job: 20 bytes.
func ID(n int) string {
	number := strconv.Itoa(n)
	return idPrefix + strings.Repeat("0", idDigits-len(number)) + number
}

// N is the number of the job with an id.
func N(id string) (int, error) {
	digits, ok := strings.CutPrefix(id, idPrefix)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is no job's id", id)
	}
	return n, nil
}

// ErrNoBulk means that a way has no call for many jobs.
var ErrNoBulk = errors.New("this way has no call for many jobs")
