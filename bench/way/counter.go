package way

import "context"

// A Counting is one way to fire at a threshold: a task runs at each Threshold-th hit
// of a counter within a window that never ends while it is measured.
type Counting struct {
	Name, What string
	Needs      []string
	Open       func(ctx context.Context, env Env) (Counter, error)
}

// Threshold is how many hits fire.
const Threshold = 100

// Counter is a way of counting at work in one process.
type Counter interface {
	// Single makes so many hits, each with a call of its own, spread evenly over
	// counters with the numbers 0 to counters-1, by so many callers at a time.
	Single(ctx context.Context, hits, counters, callers int) error
	// Bulk is the same with the fastest call for many hits; ErrNoBulk if there is none.
	Bulk(ctx context.Context, hits, counters int) error
	// Fired is how many firings there have been, once all hits were answered.
	Fired(ctx context.Context) (int, error)
	Close() error
}
