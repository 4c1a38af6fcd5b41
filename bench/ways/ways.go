// Package ways holds the ways that are compared, each as its own documentation would
// have it done: small, idiomatic, on the real component. A way that needs what this
// machine lacks fails to open with an error that wraps servers.ErrMissing; none works in part.
package ways

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// All are the ways, in the order of the tables: from what lives in a database or in one
// process to queues on Redis, and Keyfuse at the end, after what it is measured against:
// plain SETs, and its scripts alone.
func All() []way.Way {
	return slices.Concat(
		postgresWays(),
		[]way.Way{heapWay(), wheelWay()},
		rabbitWays(),
		[]way.Way{zsetPollWay(), zsetLuaWay(), bareWay(), bareFastWay(), asynqWay(), asynqFastWay()},
		riverWays(),
		[]way.Way{bullMQWay(), delayQueueWay()},
		beanstalkWays(),
		[]way.Way{setsWay(), scriptsWay(), keyfuseWay(), keyfuseDaemonWay()},
	)
}

// Countings are the ways to fire at a threshold.
func Countings() []way.Counting {
	return []way.Counting{incrCounting(), keyfuseCounting()}
}

// redisServer is the server's name that Redis-based ways need.
const redisServer = "redis"

// bulkSize is how many jobs a pipeline or a call for many holds.
const bulkSize = 1000

// pollEvery is how often those ways look that have to be told.
const pollEvery = 100 * time.Millisecond

// dial makes a client as most programs have it, with a connection for each worker.
func dial(env way.Env) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: env.Addrs[redisServer], PoolSize: way.Workers + 8, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// named is a payload that tells whose it is, for ways that keep no ids.
func named(n int) string { return way.ID(n) + " " + way.Payload }

func nOfNamed(payload string) (int, error) {
	id, _, _ := strings.Cut(payload, " ")
	return way.N(id)
}

// unlessEnded is nil if ctx has ended: what fails then was told to stop.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// pause waits so long, and says whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// pool runs the jobs that it is given, way.Workers at a time.
type pool struct {
	jobs    chan int // holds as many again, so that no worker waits for the one that fills it
	working sync.WaitGroup
}

func newPool(run func(n int)) *pool {
	p := &pool{jobs: make(chan int, way.Workers)}
	for range way.Workers {
		p.working.Go(func() {
			for n := range p.jobs {
				run(n)
			}
		})
	}
	return p
}

// end waits until all that was given has run.
func (p *pool) end() {
	close(p.jobs)
	p.working.Wait()
}

// cached is a folder of this user's cache, for what is built once.
func cached(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder to keep %s in: %w", name, err)
	}
	folder := filepath.Join(cache, "keyfuse-bench", name)
	return folder, os.MkdirAll(folder, 0o700)
}
