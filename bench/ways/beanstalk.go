package ways

import (
	"context"
	"errors"
	"fmt"
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
			b := &beanstalkd{addr: env.Addrs["beanstalkd"]}
			b.putting.open = b.dial
			return b, nil
		},
	}}
}

const (
	beanstalkPriority = 1024             // as good as any, if all have it
	beanstalkTTR      = 60 * time.Second // after which a job that was not deleted is run again
	// beanstalkPatience is how long a connection waits for a job before it asks again.
	beanstalkPatience = time.Hour
)

type beanstalkd struct {
	addr    string
	putting kept[*beanstalk.Conn]
}

func (b *beanstalkd) dial() (*beanstalk.Conn, error) {
	conn, err := beanstalk.Dial("tcp", b.addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to beanstalkd: %w", err)
	}
	return conn, nil
}

func (b *beanstalkd) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(_ context.Context, job way.Job) error {
		return b.putting.with(func(conn *beanstalk.Conn) error {
			_, err := conn.Put([]byte(named(job.N)), beanstalkPriority, beanstalkDelay(job.Due), beanstalkTTR)
			return err
		})
	})
}

// beanstalkDelay is never too short.
func beanstalkDelay(due time.Time) time.Duration {
	left := max(0, time.Until(due))
	return (left + time.Second - 1).Truncate(time.Second)
}

// Bulk is way.ErrNoBulk: the protocol has no call for many jobs.
func (*beanstalkd) Bulk(context.Context, way.Jobs) error { return way.ErrNoBulk }

func (b *beanstalkd) Work(ctx context.Context, ready func(), run func(n int)) error {
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
	n, err := nOfNamed(string(body))
	if err != nil {
		return err
	}
	run(n)
	return conn.Delete(id)
}

func (b *beanstalkd) Close() error { return b.putting.Close() }
