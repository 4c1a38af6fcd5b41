package ways

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// riverWays are River at its defaults and at its fastest documented settings. A leader
// among its clients looks every 5 s for what is due in the next 5 s, which no setting
// changes; from there on a job is fetched when it is due, by polling.
func riverWays() []way.Way {
	return []way.Way{
		{
			Name: "river",
			What: fmt.Sprintf("River on PostgreSQL at its defaults: polls every 1 s, fetches at most every 100 ms; "+
				"MaxWorkers %d; bulk is InsertMany", way.Workers),
			Needs: []string{"postgres"},
			Open:  riverOpener(riverDefaults(), (*riverQueue).insertMany),
		},
		{
			Name: "river-fast",
			What: fmt.Sprintf("River with FetchPollInterval %s, FetchCooldown %s, MaxWorkers %d, RescueStuckJobsAfter %s; "+
				"bulk is InsertManyFast, which is COPY", riverFastPoll, riverFastCooldown, riverFastWorkers, riverFastRescue),
			Needs: []string{"postgres"},
			Open:  riverOpener(riverFast(), (*riverQueue).insertManyFast),
		},
	}
}

const (
	riverFastPoll     = river.FetchPollIntervalMin
	riverFastCooldown = river.FetchCooldownMin
	// riverFastWorkers is also how many jobs a fetch may take, which is what River's
	// speed depends on; about so many were the best in its own benchmark.
	riverFastWorkers = 1000
	// riverFastRescue is how old a run must be to be taken for that of a worker that
	// was killed; it has to be longer than the timeout of a job.
	riverFastRescue  = 10 * time.Second
	riverFastTimeout = 5 * time.Second

	riverBatch = 5000 // jobs in one call, as in River's own benchmark
)

func riverDefaults() river.Config {
	return river.Config{Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: way.Workers}}}
}

func riverFast() river.Config {
	return river.Config{
		FetchPollInterval: riverFastPoll, FetchCooldown: riverFastCooldown,
		JobTimeout: riverFastTimeout, RescueStuckJobsAfter: riverFastRescue,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: riverFastWorkers}},
	}
}

// riverJob is what River stores.
type riverJob struct {
	ID      string `json:"id"`
	Payload string `json:"payload"`
}

func (riverJob) Kind() string { return way.Task }

type riverQueue struct {
	pool   *pgxpool.Pool
	config river.Config
	client *river.Client[pgx.Tx] // which only inserts
	bulk   func(*riverQueue, context.Context, []river.InsertManyParams) error
}

func riverOpener(config river.Config, bulk func(*riverQueue, context.Context, []river.InsertManyParams) error,
) func(context.Context, way.Env) (way.Instance, error) {
	config.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return func(ctx context.Context, env way.Env) (way.Instance, error) {
		pool, err := postgresPool(ctx, env.Addrs["postgres"])
		if err != nil {
			return nil, err
		}
		client, err := openRiver(ctx, pool, config.Logger)
		if err != nil {
			pool.Close()
			return nil, err
		}
		return &riverQueue{pool, config, client, bulk}, nil
	}
}

// openRiver makes River's tables, and a client that inserts.
func openRiver(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) (*river.Client[pgx.Tx], error) {
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: log})
	if err != nil {
		return nil, err
	}
	err = postgresOnce(ctx, pool, func(pgx.Tx) error {
		_, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return river.NewClient(driver, &river.Config{Logger: log})
}

func (r *riverQueue) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(ctx context.Context, job way.Job) error {
		p := riverParams(job)
		_, err := r.client.Insert(ctx, p.Args, p.InsertOpts)
		return err
	})
}

func (r *riverQueue) Bulk(ctx context.Context, jobs way.Jobs) error {
	return jobs.Chunks(riverBatch, func(chunk way.Jobs) error {
		params := make([]river.InsertManyParams, chunk.Count)
		for i := range params {
			params[i] = riverParams(chunk.Job(i))
		}
		return r.bulk(r, ctx, params)
	})
}

func (r *riverQueue) insertMany(ctx context.Context, params []river.InsertManyParams) error {
	_, err := r.client.InsertMany(ctx, params)
	return err
}

func (r *riverQueue) insertManyFast(ctx context.Context, params []river.InsertManyParams) error {
	_, err := r.client.InsertManyFast(ctx, params)
	return err
}

func riverParams(job way.Job) river.InsertManyParams {
	return river.InsertManyParams{
		Args:       riverJob{way.ID(job.N), way.Payload},
		InsertOpts: &river.InsertOpts{ScheduledAt: job.Due},
	}
}

func (r *riverQueue) Close() error {
	r.pool.Close()
	return nil
}
