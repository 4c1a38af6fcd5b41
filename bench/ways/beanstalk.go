package ways

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// beanstalkWays is beanstalkd, whose jobs have a delay of their own in whole seconds.
func beanstalkWays() []way.Way {
	return []way.Way{{
		Name: "beanstalkd",
		What: fmt.Sprintf("beanstalkd with its binlog: put with a delay, which is in whole seconds and rounded up; "+
			"%d connections that reserve, run, delete", way.Workers),
		Needs: []string{"beanstalkd"},
		Grain: time.Second,
		Open: func(_ context.Context, env way.Env) (way.Instance, error) {
			return beanstalkd{env.Addrs["beanstalkd"]}, nil
		},
	}}
}

const (
	beanstalkPriority = 1024             // as good as any, if all have it
	beanstalkTTR      = 60 * time.Second // after which a job that was not deleted is run again
	// beanstalkPatience is how long a connection waits for a job before it asks again.
	beanstalkPatience = time.Hour
)

type beanstalkd struct{ addr string }

func (b beanstalkd) dial() (*beanstalk.Conn, error) {
	conn, err := beanstalk.Dial("tcp", b.addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to beanstalkd: %w", err)
	}
	return conn, nil
}

func (b beanstalkd) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	conns := make(chan *beanstalk.Conn, callers) // one for each caller
	for range callers {
		conn, err := b.dial()
		if err != nil {
			return err
		}
		defer conn.Close()
		conns <- conn
	}
	return jobs.Each(ctx, callers, func(_ context.Context, job way.Job) error {
		conn := <-conns
		defer func() { conns <- conn }()
		_, err := conn.Put([]byte(way.ID(job.N)+" "+way.Payload), beanstalkPriority, beanstalkDelay(job.Due), beanstalkTTR)
		return err
	})
}

// beanstalkDelay is never too short.
func beanstalkDelay(due time.Time) time.Duration {
	left := max(0, time.Until(due))
	return (left + time.Second - 1).Truncate(time.Second)
}

// Bulk is way.ErrNoBulk: the protocol has no call for many jobs.
func (beanstalkd) Bulk(context.Context, way.Jobs) error { return way.ErrNoBulk }

func (b beanstalkd) Work(ctx context.Context, ready func(), run func(n int)) error {
	conns := make([]*beanstalk.Conn, way.Workers)
	for i := range conns {
		conn, err := b.dial()
		if err != nil {
			return err
		}
		defer conn.Close()
		conns[i] = conn
	}
	ready()
	errs := make([]error, len(conns))
	var working sync.WaitGroup
	for i, conn := range conns {
		working.Go(func() {
			for ctx.Err() == nil && errs[i] == nil {
				errs[i] = beanstalkRun(ctx, conn, run)
			}
		})
	}
	working.Wait()
	return errors.Join(errs...)
}

// beanstalkRun runs the next job. When ctx ends while it waits for one, it closes the
// connection: beanstalkd then has again what it may just have given.
func beanstalkRun(ctx context.Context, conn *beanstalk.Conn, run func(n int)) error {
	keep := context.AfterFunc(ctx, func() { _ = conn.Close() })
	id, body, err := conn.Reserve(beanstalkPatience)
	if !keep() || errors.Is(err, beanstalk.ErrTimeout) {
		return nil
	}
	if err != nil {
		return err
	}
	text, _, _ := strings.Cut(string(body), " ")
	n, err := way.N(text)
	if err != nil {
		return err
	}
	run(n)
	return conn.Delete(id)
}

func (beanstalkd) Close() error { return nil }
