package ways

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// postgresWays are a table of jobs that is polled, at two intervals.
func postgresWays() []way.Way {
	polled := func(name string, every time.Duration) way.Way {
		return way.Way{
			Name: name,
			What: fmt.Sprintf("PostgreSQL table with an index on due; one loop polls it every %s, and at once after a full batch: "+
				"up to %d are deleted with FOR UPDATE SKIP LOCKED, run by %d goroutines, and committed; bulk is COPY",
				every, postgresBatch, way.Workers),
			Needs: []string{"postgres"},
			Open: func(ctx context.Context, env way.Env) (way.Instance, error) {
				return openPostgres(ctx, env.Addrs["postgres"], every)
			},
		}
	}
	return []way.Way{polled("postgres-1s", time.Second), polled("postgres-100ms", 100*time.Millisecond)}
}

const (
	postgresBatch = 1000
	// postgresConns lets 32 callers commit together, which is when PostgreSQL is
	// fastest; a pool's default is 4.
	postgresConns = 64
	// postgresSetup is the advisory lock under which tables are made: processes that
	// open at the same time would get in each other's way.
	postgresSetup = 42
)

type postgres struct {
	pool  *pgxpool.Pool
	every time.Duration
}

func openPostgres(ctx context.Context, url string, every time.Duration) (*postgres, error) {
	pool, err := postgresPool(ctx, url)
	if err != nil {
		return nil, err
	}
	err = postgresOnce(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			CREATE TABLE IF NOT EXISTS jobs (
				id text PRIMARY KEY, task text NOT NULL, payload text NOT NULL, due timestamptz NOT NULL
			);
			CREATE INDEX IF NOT EXISTS jobs_due ON jobs (due)`)
		return err
	})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &postgres{pool, every}, nil
}

func postgresPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the address of PostgreSQL: %w", err)
	}
	config.MaxConns = postgresConns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	return pool, nil
}

// postgresOnce calls setup while no other process does.
func postgresOnce(ctx context.Context, pool *pgxpool.Pool, setup func(tx pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", postgresSetup); err != nil {
			return err
		}
		return setup(tx)
	})
	if err != nil {
		return fmt.Errorf("making the tables: %w", err)
	}
	return nil
}

func (p *postgres) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(ctx context.Context, job way.Job) error {
		_, err := p.pool.Exec(ctx, "INSERT INTO jobs (id, task, payload, due) VALUES ($1, $2, $3, $4)",
			way.ID(job.N), way.Task, way.Payload, job.Due)
		return err
	})
}

func (p *postgres) Bulk(ctx context.Context, jobs way.Jobs) error {
	rows := pgx.CopyFromSlice(jobs.Count, func(i int) ([]any, error) {
		job := jobs.Job(i)
		return []any{way.ID(job.N), way.Task, way.Payload, job.Due}, nil
	})
	_, err := p.pool.CopyFrom(ctx, pgx.Identifier{"jobs"}, []string{"id", "task", "payload", "due"}, rows)
	return err
}

// Work has one loop: with two to four a burst drained no faster that could be told on two
// cores, and each would poll.
func (p *postgres) Work(ctx context.Context, ready func(), run func(n int)) error {
	poll := time.NewTicker(p.every)
	defer poll.Stop()
	if err := p.pool.Ping(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	ready()
	for ctx.Err() == nil {
		count, err := p.batch(ctx, run)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if count == postgresBatch {
			continue
		}
		select {
		case <-ctx.Done():
		case <-poll.C:
		}
	}
	return nil
}

// batch runs jobs that are due, and says how many. They are deleted in a transaction
// that is committed when all have run: when the worker ends before, they are there again.
func (p *postgres) batch(ctx context.Context, run func(n int)) (count int, err error) {
	tx, err := p.pool.Begin(ctx)
	if err != nil {
		return 0, err
	}
	settle := context.WithoutCancel(ctx) // what has run is committed, whatever ends
	defer tx.Rollback(settle)            // after a commit it does nothing
	rows, err := tx.Query(ctx, `
		DELETE FROM jobs WHERE id = ANY(ARRAY(
			SELECT id FROM jobs WHERE due <= now() ORDER BY due LIMIT $1 FOR UPDATE SKIP LOCKED
		)) RETURNING id, task, payload`, postgresBatch)
	if err != nil {
		return 0, err
	}
	jobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (int, error) {
		var id, task, payload string
		if err := row.Scan(&id, &task, &payload); err != nil {
			return 0, err
		}
		return way.N(id)
	})
	if err != nil {
		return 0, err
	}
	runBatch(jobs, run)
	return len(jobs), tx.Commit(settle)
}

// runBatch runs the jobs, way.Workers at a time, and waits for them.
func runBatch(jobs []int, run func(n int)) {
	var running sync.WaitGroup
	for w := range min(way.Workers, len(jobs)) {
		running.Go(func() {
			for i := w; i < len(jobs); i += way.Workers {
				run(jobs[i])
			}
		})
	}
	running.Wait()
}

func (p *postgres) Close() error {
	p.pool.Close()
	return nil
}
