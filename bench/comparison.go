package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/result"
	"github.com/keyfuse-io/keyfuse/bench/servers"
)

// comparison is one run of bench run.
type comparison struct {
	app     *app
	size    string
	file    string
	batches []batch

	mu      sync.Mutex // for what follows
	results *result.Results
}

// run measures all that is planned. It goes on after what fails, and tells of it.
func (c *comparison) run(ctx context.Context) error {
	c.head(ctx)
	if err := save(c.file, c.results); err != nil {
		return err
	}
	failed := 0
	for i, b := range c.batches {
		fmt.Fprintf(c.app.stderr, "[%d/%d] about %s left: %s\n", i+1, len(c.batches),
			minutes(expectAll(c.batches[i:], c.results.Runs)), b.title())
		n, err := c.make(ctx, b)
		if err != nil {
			return err
		}
		failed += n
	}
	if failed > 0 {
		fmt.Fprintf(c.app.stderr, "bench: %d measurements have failed, as %s says; --resume makes them again\n", failed, c.file)
		return errReported
	}
	return nil
}

func (b batch) title() string {
	if len(b) > 1 {
		return fmt.Sprintf("%s of %d ways, round %d", b[0].kind.Name, len(b), b[0].round+1)
	}
	return fmt.Sprintf("%s of %s, round %d", b[0].kind.Name, b[0].way, b[0].round+1)
}

// make makes the measurements of a batch at the same time, and says how many failed.
func (c *comparison) make(ctx context.Context, b batch) (failed int, err error) {
	errs := make([]error, len(b))
	var measuring sync.WaitGroup
	for i, u := range b {
		if c.isMissing(u.way) {
			continue
		}
		measuring.Go(func() { errs[i] = c.one(ctx, u) })
	}
	measuring.Wait()
	if ctx.Err() != nil {
		return 0, fmt.Errorf("interrupted: what was measured is in %s; --resume goes on", c.file)
	}
	for _, err := range errs {
		if _, ok := errors.AsType[*failure](err); ok {
			failed++
		} else if err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// failure is the error of a measurement that was noted.
type failure struct{ why error }

func (f *failure) Error() string { return f.why.Error() }

// one makes a measurement and keeps what came of it, unless ctx has ended.
func (c *comparison) one(ctx context.Context, u unit) error {
	began := time.Now()
	values, err := c.app.child(ctx, task{Figure: u.kind.Name, Way: u.way, Round: u.round, Size: c.size}, u.kind.Limit)
	if ctx.Err() != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, servers.ErrMissing) {
		fmt.Fprintf(c.app.stderr, "%s: %v\n", u.way, err)
		c.results.Missing[u.way] = err.Error()
		return save(c.file, c.results)
	}
	run := result.Run{
		Figure: u.kind.Name, Way: u.way, Round: u.round,
		At: began.UTC().Format(time.RFC3339), Took: time.Since(began).Seconds(),
		Commit: c.results.Versions[ourselves], Kernel: c.results.Machine.Kernel,
	}
	if err != nil {
		run.Failed = err.Error()
		fmt.Fprintf(c.app.stderr, "%s of %s has failed: %v\n", u.kind.Name, u.way, err)
	}
	keep(c.results, run, values)
	c.results.Machine.Ended = time.Now().UTC().Format(time.RFC3339)
	if saved := save(c.file, c.results); saved != nil {
		return saved
	}
	if err != nil {
		return &failure{err}
	}
	return nil
}

func (c *comparison) isMissing(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, missing := c.results.Missing[name]
	return missing
}

// head writes what is known before anything is measured.
func (c *comparison) head(ctx context.Context) {
	begun := c.results.Machine.Begun
	load := c.results.Machine.Load
	c.results.Machine = machine()
	if begun != "" { // a part of a comparison that has begun before
		c.results.Machine.Begun, c.results.Machine.Load = begun, load
	}
	c.results.Versions = versions(ctx)
	if c.results.Missing == nil {
		c.results.Missing = make(map[string]string)
	}
	for _, b := range c.batches {
		for _, u := range b {
			delete(c.results.Missing, u.way) // it may be installed by now
		}
	}
	c.results.Ways = c.app.described(c.batches, c.results.Values)
}
