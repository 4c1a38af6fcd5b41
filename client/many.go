package client

import (
	"cmp"
	"context"
	"iter"
	mathrand "math/rand/v2"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// Result is what became of one of many.
type Result struct {
	Scheduled
	Err error // as of Schedule
}

// ScheduleMany arms many jobs, a few hundred a call, and yields what became of
// each, in order, while it goes on reading specs and the next call is on its way. A
// call takes specs of one IfExists only, so those that go together should come
// together. A spec that is refused does not stop the others. An error from Redis is
// yielded once for the first spec of the chunk it befell, and ends the sequence: what
// was yielded before is armed. What was not yielded, because of an error or because
// the caller stopped, may be armed or not; it can be given again with Keep.
func (c *Client) ScheduleMany(ctx context.Context, specs iter.Seq[Spec]) iter.Seq2[int, Result] {
	return func(yield func(int, Result) bool) {
		m := &many{client: c, yield: yield}
		defer m.wait()
		for chunk := range c.chunks(specs) {
			if !m.send(ctx, chunk) {
				return
			}
		}
		m.land(m.flying)
	}
}

// many is a sequence under way: while Redis works on a chunk, the next is put together
// and sent, so that Redis need not wait.
type many struct {
	client *Client
	yield  func(int, Result) bool
	n      int     // results yielded
	flying *flight // the chunk that was sent last; nil at first
}

// flight is a chunk on its way.
type flight struct {
	specs   []Spec
	ids     map[string]struct{}
	done    chan struct{} // closed when the rest is there
	results []Result
	err     error
}

// send sends a chunk and yields the results of the one before. False if that ended the
// sequence.
func (m *many) send(ctx context.Context, chunk []Spec) bool {
	before, next := m.flying, newFlight(chunk)
	if before.shares(next) { // an id's outcome depends on which of the two comes first
		if !m.land(before) {
			return false
		}
		before = nil
	}
	m.flying = next
	go func() {
		defer close(next.done)
		next.results, next.err = m.client.chunk(ctx, chunk)
	}()
	return m.land(before)
}

func newFlight(chunk []Spec) *flight {
	f := &flight{specs: chunk, ids: make(map[string]struct{}, len(chunk)), done: make(chan struct{})}
	for _, spec := range chunk {
		if spec.ID != "" {
			f.ids[spec.ID] = struct{}{}
		}
	}
	return f
}

// shares says whether an id is in both.
func (f *flight) shares(next *flight) bool {
	if f == nil {
		return false
	}
	for id := range next.ids {
		if _, ok := f.ids[id]; ok {
			return true
		}
	}
	return false
}

// land waits for a chunk and yields its results. False if the sequence has ended.
func (m *many) land(f *flight) bool {
	if f == nil {
		return true
	}
	<-f.done
	for _, r := range f.results {
		if !m.yield(m.n, r) {
			return false
		}
		m.n++
	}
	if f.err != nil {
		failed := f.specs[len(f.results)]
		m.yield(m.n, Result{Scheduled: Scheduled{Job: Job{ID: failed.ID, Task: failed.Task}}, Err: f.err})
	}
	return f.err == nil
}

// wait waits for what is on its way, for whose results nobody asks any more.
func (m *many) wait() {
	if m.flying != nil {
		<-m.flying.done
	}
}

// maxChunkBytes bounds the payloads of one call, and so how long it takes.
const maxChunkBytes = 4 << 20

// chunks are the specs as they go together.
func (c *Client) chunks(specs iter.Seq[Spec]) iter.Seq[[]Spec] {
	most := wire.MaxArm * len(c.space.All())
	return func(yield func([]Spec) bool) {
		var chunk []Spec
		bytes := 0
		for spec := range specs {
			full := len(chunk) == most || bytes+len(spec.Payload) > maxChunkBytes
			if len(chunk) > 0 && (full || spec.IfExists != chunk[0].IfExists) {
				if !yield(chunk) {
					return
				}
				chunk, bytes = make([]Spec, 0, most), 0
			}
			chunk = append(chunk, spec)
			bytes += len(spec.Payload)
		}
		if len(chunk) > 0 {
			yield(chunk)
		}
	}
}

// chunk arms some specs, all of the same IfExists, in one call a partition. After
// an error the results are those of the specs before the first that it befell.
func (c *Client) chunk(ctx context.Context, specs []Spec) ([]Result, error) {
	results := make([]Result, len(specs))
	jobs := make([]wire.ArmJob, 0, len(specs))
	places := make([]int, 0, len(specs))
	for i, spec := range specs {
		r, job := c.prepare(spec)
		if results[i] = r; r.Err == nil {
			jobs, places = append(jobs, job), append(places, i)
		}
	}
	mode := cmp.Or(specs[0].IfExists, Fail)
	failed, err := wire.Group(jobs, func(job wire.ArmJob) *wire.Store { return c.space.Of(job.ID) }, wire.MaxArm,
		func(store *wire.Store, jobs []wire.ArmJob, at []int) (int, error) {
			armed, _, confirmed, err := store.ArmConfirmed(ctx, c.confirm(), mode, mathrand.Int64(), jobs)
			for i, a := range armed {
				results[places[at[i]]].settle(a, confirmed, c.cfg.WaitReplicas)
			}
			return len(armed), err
		})
	if err != nil {
		results = results[:places[failed]]
	}
	return results, err
}
