package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// IfExists says what to do with an id that is pending already.
type IfExists = wire.IfExists

// The choices. An id whose last run is still running, retrying or dead is free:
// scheduling it makes a new job.
const (
	Fail    = wire.Fail    // ErrExists; the default
	Replace = wire.Replace // the new job takes its place, payload and all
	Keep    = wire.Keep    // the old job stays, and is the answer
)

// Spec is a job to schedule.
type Spec struct {
	// ID is the job's Redis key: 1 to 512 bytes. Empty means a random one.
	ID string
	// Task names what to run. It need not be served by anybody yet.
	Task    string
	Payload []byte // nil is the same as empty
	// Trace is the traceparent of what schedules the job (W3C Trace Context), which
	// its handler gets. It stands before the payload in Redis, and counts as part of
	// it there. Empty means none.
	Trace string
	// In is how long from now, by Redis's clock. At is the due time; it counts
	// if it is not zero, and then In must be zero. Both zero, or At in the past:
	// due at once. Fractions of a millisecond are rounded up.
	In time.Duration
	At time.Time
	// IfExists is empty for Fail.
	IfExists IfExists
}

// Scheduled is a job that was scheduled, or was there already.
type Scheduled struct {
	Job
	Replaced bool // it took the place of a pending job
	Kept     bool // one was pending before, and stays; only its Due is given
	Replicas int  // that have it; zero unless Config.WaitReplicas asks for some
}

// Schedule arms one job. Errors: ErrInvalid; ErrExists; ErrForeignKey;
// ErrCounting if a threshold's window is open under the id; ErrUnconfirmed; or what
// Redis answered. If a job was kept, or refused with ErrExists, Due is that of the job
// that is there, and Get tells its task and payload. Concurrent calls share calls of
// Redis.
func (c *Client) Schedule(ctx context.Context, spec Spec) (Scheduled, error) {
	r, job := c.prepare(spec)
	if r.Err != nil {
		return r.Scheduled, r.Err
	}
	job.Payload = slices.Clone(job.Payload) // the caller may do with it what it likes when it has left
	armed, err := c.arms.ask(ctx, armKey{c.space.Of(job.ID), cmp.Or(spec.IfExists, Fail)}, job)
	if err != nil {
		return Scheduled{}, err
	}
	r.settle(armed.ArmResult, armed.Confirmed, c.cfg.WaitReplicas)
	return r.Scheduled, r.Err
}

// armKey is what jobs have in common that go in one call.
type armKey struct {
	store *wire.Store
	mode  IfExists
}

type armed struct {
	wire.ArmResult
	wire.Confirmed
}

// arm makes a call for the jobs of several callers.
func (c *Client) arm(ctx context.Context, key armKey, token int64, jobs []wire.ArmJob) ([]armed, error) {
	results, _, confirmed, err := key.store.ArmConfirmed(ctx, c.confirm(), key.mode, token, jobs)
	all := make([]armed, len(results))
	for i, r := range results {
		all[i] = armed{r, confirmed}
	}
	return all, err
}

// prepare is a spec's answer as far as it is known, with an error if it can't be
// scheduled, and the job to arm.
func (c *Client) prepare(spec Spec) (Result, wire.ArmJob) {
	if spec.ID == "" {
		spec.ID = c.cfg.IDPrefix + strings.ToLower(rand.Text())
	}
	r := Result{Err: c.check(spec)}
	r.Job = Job{ID: spec.ID, Task: spec.Task, State: Pending, Payload: spec.Payload, Trace: spec.Trace}
	return r, wire.ArmJob{ID: spec.ID, Task: spec.Task, Payload: wire.WithTrace(spec.Trace, spec.Payload), When: wire.When{In: spec.In, At: spec.At}}
}

func (c *Client) confirm() wire.Confirm {
	return wire.Confirm{Replicas: c.cfg.WaitReplicas, Timeout: c.cfg.WaitTimeout}
}

func (r *Result) settle(a wire.ArmResult, confirmed wire.Confirmed, wanted int) {
	r.Due, r.Replicas = a.Due, confirmed.Replicas
	r.Err = unconfirmed(r.ID, confirmed, wanted)
	switch a.Outcome {
	case wire.ArmedReplaced:
		r.Replaced = true
	case wire.ArmedKept:
		r.Kept = true
	case wire.RefusedPending:
		due := "never: its fuse has no TTL"
		if !a.Due.IsZero() {
			due = a.Due.UTC().Format(time.RFC3339)
		}
		r.Err = fmt.Errorf("%w: %q is due %s", ErrExists, r.ID, due)
	case wire.RefusedWindow:
		r.Err = fmt.Errorf("%w: %q; cancel its window, or choose another id", ErrCounting, r.ID)
	case wire.RefusedForeign:
		r.Err = fmt.Errorf("%w: %q; choose another id", ErrForeignKey, r.ID)
	}
}

func unconfirmed(id string, confirmed wire.Confirmed, wanted int) error {
	switch {
	case wanted == 0 || confirmed.Err == nil && confirmed.Replicas >= wanted:
		return nil
	case confirmed.Err != nil:
		return fmt.Errorf("%w: nobody could be asked who has %q, which is scheduled all the same: %w", ErrUnconfirmed, id, confirmed.Err)
	}
	return fmt.Errorf("%w: %d of %d have %q, which is scheduled all the same", ErrUnconfirmed, confirmed.Replicas, wanted, id)
}

func (c *Client) check(spec Spec) error {
	if err := c.checkID(spec.ID); err != nil {
		return err
	}
	if err := wire.CheckTask(spec.Task); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch spec.IfExists {
	case "", Fail, Replace, Keep:
	default:
		return fmt.Errorf("%w: IfExists is %q, want fail, replace or keep", ErrInvalid, spec.IfExists)
	}
	if err := c.checkPayload(spec.Payload); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := c.checkTrace(spec); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return checkWhen(spec.In, spec.At)
}

func (c *Client) checkPayload(payload []byte) error {
	if len(payload) > c.cfg.MaxPayload {
		return fmt.Errorf("the payload has %d bytes, at most %d are allowed: store it elsewhere and pass its name", len(payload), c.cfg.MaxPayload)
	}
	return nil
}

// TraceSize is by how many bytes a trace makes a payload longer.
const TraceSize = wire.TraceSize

// CheckTrace says what is wrong with a trace, as Schedule would; empty is none, and
// fine.
func CheckTrace(trace string) error { return wire.CheckTrace(trace) }

func (c *Client) checkTrace(spec Spec) error {
	if spec.Trace != "" && len(spec.Payload)+wire.TraceSize > c.cfg.MaxPayload {
		return fmt.Errorf("with its trace the payload has %d bytes, at most %d are allowed: store it elsewhere and pass its name", len(spec.Payload)+wire.TraceSize, c.cfg.MaxPayload)
	}
	return wire.CheckTrace(spec.Trace)
}

func checkWhen(in time.Duration, at time.Time) error {
	switch {
	case in != 0 && !at.IsZero():
		return fmt.Errorf("%w: it has both a delay and a time", ErrInvalid)
	case in < 0:
		return fmt.Errorf("%w: the delay %s is negative", ErrInvalid, in)
	case in > MaxDelay || time.Until(at) > MaxDelay:
		return fmt.Errorf("%w: it is due more than 10 years from now", ErrInvalid)
	}
	return nil
}

func (c *Client) checkID(id string) error {
	if err := wire.CheckID(id); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := c.checkPrefix(id); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

func (c *Client) checkPrefix(id string) error {
	if !strings.HasPrefix(id, c.cfg.IDPrefix) {
		return fmt.Errorf("id %q does not begin with the prefix %q", id, c.cfg.IDPrefix)
	}
	return nil
}

// Reschedule gives a waiting job another due time: a pending one, or else the
// next attempt of one that is retrying. In and at are as in Spec. Errors:
// ErrInvalid; ErrNotFound; ErrRunning; ErrDead; ErrCounting for a threshold's
// window, whose end can't be moved; ErrUnconfirmed; or what Redis answered.
func (c *Client) Reschedule(ctx context.Context, id string, in time.Duration, at time.Time) (Job, error) {
	if err := c.checkID(id); err != nil {
		return Job{}, err
	}
	if err := checkWhen(in, at); err != nil {
		return Job{}, err
	}
	return c.move(ctx, id, wire.When{In: in, At: at}, false)
}

// Fire makes a waiting job due now, whatever its due time. An open window ends
// and fires with the count that it has. Errors as of Reschedule, but ErrCounting
// is for a window that has fired already, in mode Once.
func (c *Client) Fire(ctx context.Context, id string) (Job, error) {
	if err := c.checkID(id); err != nil {
		return Job{}, err
	}
	return c.move(ctx, id, wire.When{}, true)
}

func (c *Client) move(ctx context.Context, id string, when wire.When, manual bool) (Job, error) {
	confirm := c.confirm()
	if manual { // it is due now: soon there is nothing left to lose
		confirm = wire.Confirm{}
	}
	moved, confirmed, err := c.space.Of(id).MoveConfirmed(ctx, confirm, id, when, manual)
	if err != nil {
		return Job{}, err
	}
	job := Job{ID: id, Task: moved.Task, State: Pending, Due: moved.Due, RunID: moved.RunID, Count: moved.Count}
	if moved.RunID != "" {
		job.State, job.At = Retrying, moved.Due
	}
	if manual && moved.Outcome == wire.MetWindow {
		return job, fmt.Errorf("%w: %q has fired, and does again after its window: cancel closes it", ErrCounting, id)
	}
	if err := met(id, moved.Outcome, moved.RunID); err != nil {
		return job, err
	}
	return job, unconfirmed(id, confirmed, confirm.Replicas)
}

// Cancel removes what has not started of a job, and closes the window that is
// open under the id: its hits are forgotten. If the connection makes a call again
// whose reply was lost, the answer is that of the second one: ErrNotFound for a
// job that the first one cancelled. Errors: ErrInvalid; ErrNotFound; ErrRunning
// if a run of it is under way, which goes on; ErrDead; or what Redis answered.
func (c *Client) Cancel(ctx context.Context, id string) error {
	if err := c.checkID(id); err != nil {
		return err
	}
	results, err := c.space.Of(id).Cancel(ctx, id)
	if err != nil {
		return err
	}
	return met(id, results[0].Outcome, results[0].RunID)
}

// met says as an error what a change met, or nil if it changed what it should.
func met(id string, outcome wire.Changed, runID string) error {
	switch outcome {
	case wire.ChangedIt:
		return nil
	case wire.MetRunning:
		return fmt.Errorf("%w: %q, run %s", ErrRunning, id, runID)
	case wire.MetDead:
		return fmt.Errorf("%w: %q, run %s; requeue or delete it there", ErrDead, id, runID)
	case wire.MetNoJob:
		return fmt.Errorf("%w: %q has a class key that makes no job; keyfuse doctor says why", ErrNotFound, id)
	case wire.MetWindow:
		return fmt.Errorf("%w: the end of the window of %q can't be moved; fire or cancel closes it", ErrCounting, id)
	case wire.MetNothing:
	}
	return fmt.Errorf("%w: %q", ErrNotFound, id)
}
