// Package client schedules jobs, defines thresholds and counts their hits, and
// looks after all of them. It needs a Redis and no daemon: what it arms or fires
// is kept until a node that serves the task claims it.
//
// Every change is one atomic step in Redis, and takes its time from Redis's
// clock, so that a skewed clock here shifts nothing. A change that meets a
// firing at the same moment either comes first or answers ErrRunning: there is
// no third way. A connection may make each call again by itself after a lost
// reply: a job is armed once, and a hit counts once. So may the caller, but for
// hits: those need a RequestID for it.
package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// Errors that the methods return, wrapped with what they are about.
var (
	ErrNotFound   = errors.New("no such job")
	ErrExists     = errors.New("the id is already scheduled")
	ErrForeignKey = errors.New("a key of that name holds other data than a job's")
	ErrRunning    = errors.New("the job has started already")
	ErrDead       = errors.New("the job is among the dead letters")
	ErrCounting   = errors.New("a threshold counts under this id")
	ErrInvalid    = errors.New("invalid argument")
	// ErrFormat: the data are of another format; see CheckFormat.
	ErrFormat = wire.ErrFormat
	// ErrMoving: a cluster moves the id's partition to another server, which takes a
	// moment. Nothing was changed.
	ErrMoving = wire.ErrMoving
	// ErrUnconfirmed comes with the job: it is scheduled, but a failover at this
	// moment may lose it, for too few replicas have said that they have it. The same
	// call with Keep asks again.
	ErrUnconfirmed = errors.New("too few replicas confirm")
)

// Limits.
const (
	// DefaultMaxPayload is how long a payload may be, in bytes.
	DefaultMaxPayload = 1 << 20
	// MaxDelay is how far ahead a job may be scheduled: ten years.
	MaxDelay = 3650 * 24 * time.Hour
	// MaxID is how long an id may be, in bytes.
	MaxID = wire.MaxID
)

// Config is how a client behaves. The zero value is right for most.
type Config struct {
	// MaxPayload is how long a payload may be, in bytes. Zero means
	// DefaultMaxPayload.
	MaxPayload int
	// IDPrefix is what every id must begin with. Empty means any id.
	IDPrefix string
	// WaitReplicas is how many replicas shall have a job before Schedule and
	// Reschedule return: what they have outlives the loss of the master. Zero means
	// none. If fewer say so within WaitTimeout, the answer is ErrUnconfirmed.
	WaitReplicas int
	// WaitTimeout must be shorter than the connection's read timeout. Zero means
	// one second.
	WaitTimeout time.Duration
}

// Client schedules jobs in one Redis database, or in a cluster. It may be used by
// many goroutines, and has nothing to close.
type Client struct {
	space *wire.Space
	cfg   Config
	arms  *gather[armKey, wire.ArmJob, armed]
	hits  *gather[*wire.Store, wire.Hit, wire.HitResult]
}

// New makes a client on a connection that the caller keeps and closes: to one
// Redis, to the master that Sentinel names, or to a cluster
// (*redis.ClusterClient), where ids are spread over its masters. It does not talk
// to Redis yet. It fails only if cfg makes no sense.
func New(rdb redis.UniversalClient, cfg Config) (*Client, error) {
	if cfg.MaxPayload < 0 {
		return nil, errors.New("client: MaxPayload must not be negative")
	}
	if cfg.MaxPayload == 0 {
		cfg.MaxPayload = DefaultMaxPayload
	}
	switch limit := wire.ReadTimeoutOf(rdb); {
	case cfg.WaitReplicas < 0 || cfg.WaitTimeout < 0:
		return nil, errors.New("client: WaitReplicas and WaitTimeout must not be negative")
	case cfg.WaitTimeout == 0:
		cfg.WaitTimeout = time.Second
	case cfg.WaitReplicas > 0 && limit > 0 && cfg.WaitTimeout >= limit:
		return nil, fmt.Errorf("client: WaitTimeout is %s, want less than the connection's read timeout of %s", cfg.WaitTimeout, limit)
	}
	space, err := wire.NewSpace(rdb)
	if err != nil {
		return nil, err
	}
	c := &Client{space: space, cfg: cfg}
	c.arms = newGather(wire.MaxArm, func(job wire.ArmJob) int { return len(job.Payload) }, c.arm)
	c.hits = newGather(wire.MaxHits, func(hit wire.Hit) int { return len(hit.Item) }, hitAll)
	return c, nil
}

// CheckFormat says whether this release can work with what is in Redis: ErrFormat if
// not, with what to do. Daemons check it when they start, and go on to; the other
// methods of a Client do not.
func (c *Client) CheckFormat(ctx context.Context) error { return c.space.All()[0].SeeFormat(ctx) }

// State is where a job is: pending, running, retrying or dead. What fires before
// its time, as a threshold that is reached does, waits for its first attempt as
// retrying.
type State = wire.State

// The states of a job.
const (
	Pending  = wire.Pending
	Running  = wire.Running
	Retrying = wire.Retrying
	Dead     = wire.Dead
)

// Job is a job, or one run of it, as Redis holds it.
type Job struct {
	ID      string
	Task    string
	State   State
	Payload []byte
	Trace   string // its traceparent, as in Spec; empty if it has none
	// Due is when it fires, or fired. Zero if nothing knows: its fuse has no TTL.
	Due time.Time
	// Window is the open window of a threshold, which ends at Due; nil for other
	// pending jobs, and for runs.
	Window *Window

	// What follows is empty while the job is pending.
	RunID     string
	Attempt   int       // claimed so often
	At        time.Time // running: claimed at; retrying: next attempt; dead: died at
	Node      string    // running: who runs it, as in Stats
	Reason    string    // why it fired: timer, threshold, timeout, manual
	Source    string    // how it was found: index, event, sweep, threshold, manual
	Count     int64     // hits of the window that fired it; 0 if none did
	LastError string
}

// Trigger is what makes the job due: "timer" or "threshold".
func (j Job) Trigger() string {
	if j.Window != nil || j.Count != 0 || j.Reason == "threshold" || j.Reason == "timeout" {
		return "threshold"
	}
	return "timer"
}

func fromRun(r wire.Run) Job {
	trace, payload := wire.CutTrace(r.Payload)
	return Job{
		ID: r.ID, Task: r.Task, State: r.State, Payload: payload, Trace: trace, Due: r.Due,
		RunID: r.RunID, Attempt: r.Attempt, At: r.At, Node: wire.EngineOf(r.Node()),
		Reason: r.Reason, Source: r.Source, Count: r.Count, LastError: r.LastError,
	}
}

// Pause keeps every node from claiming runs of a task; those under way go on.
// It says whether the task was not paused before. A task that nobody knows yet
// may be paused: it then starts paused.
func (c *Client) Pause(ctx context.Context, task string) (bool, error) {
	if err := wire.CheckTask(task); err != nil {
		return false, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return c.space.AnyOf(ctx, func(s *wire.Store) (bool, error) { return s.Pause(ctx, task) })
}

// Resume undoes Pause, and says whether the task was paused.
func (c *Client) Resume(ctx context.Context, task string) (bool, error) {
	if err := wire.CheckTask(task); err != nil {
		return false, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return c.space.AnyOf(ctx, func(s *wire.Store) (bool, error) { return s.Resume(ctx, task) })
}
