package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/internal/view"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// thresholdFlags are a definition as it is typed.
type thresholdFlags struct {
	id, onTimeout, mode       string
	within, debounce, maxWait string
	count, maxBytes           string
	maxItems                  int
	payload                   payloadFlags
	given                     func(flag string) bool
}

func (a *app) thresholdCommand() *cobra.Command {
	var f thresholdFlags
	cmd := &cobra.Command{
		Use:   "threshold TASK --id ID --count N --within D",
		Short: "Run a task after so many hits of a counter, or list and remove such thresholds",
		Long: `Define a threshold: so many hits of a counter run a task, or else the end of a
window does that begins with the first hit. It lasts until it is removed; to
define the same id again replaces it. "keyfuse hit ID" counts, and so does INCR ID
of any Redis client.

An id with one * in it, not in front, is a pattern: * stands for anything, and
each id that matches counts by itself. Every key that a pattern matches and that
holds an integer is a counter. An id's own definition comes before patterns, and
the pattern with the longest text before its * before others.

A task that is called list or remove goes last, behind --.`,
		Example: `  keyfuse threshold refresh-users --id signups --count 100 --within 10m
  keyfuse threshold lock --id 'login-fail:*' --count 5 --within 10m --on-timeout drop
  keyfuse threshold digest --id mails --count 300 --within 1h --debounce 5m`,
		Args: exactly(1, "the name of one task"),
	}
	f.add(cmd)
	cmd.RunE = a.do(func(ctx context.Context, args []string) error {
		t, err := f.read()
		if err != nil {
			return err
		}
		t.Task = args[0]
		return a.with(func(ctx context.Context, s *session, _ []string) error { return a.define(ctx, s, t, f) })(ctx, nil)
	})
	cmd.AddCommand(a.thresholdListCommand(), a.thresholdRemoveCommand())
	return cmd
}

func (f *thresholdFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.given = flags.Changed
	flags.StringVar(&f.id, "id", "", "the counter's Redis key, or a pattern of such")
	flags.StringVar(&f.count, "count", "", "the `number` of hits that runs the task")
	flags.StringVar(&f.within, "within", "", "how long they have from the first one on: 90s, 30m, 7d")
	flags.StringVar(&f.onTimeout, "on-timeout", string(client.TimeoutFires), "what fewer hits do at the end of the window: fire (run it with the count that there is) or drop")
	flags.StringVar(&f.mode, "mode", string(client.Repeat), "after a firing, the next hit opens a new window (repeat), or counts for nothing until the window ends (once)")
	flags.StringVar(&f.debounce, "debounce", "", "end the window so long after the latest hit")
	flags.StringVar(&f.maxWait, "max-wait", "", "but no later than so long after the first one (default: --within)")
	flags.IntVar(&f.maxItems, "max-items", wire.DefaultMaxItems, "how many items the hits of a window may carry")
	flags.StringVar(&f.maxBytes, "max-bytes", "256KiB", "how long they may be together")
	f.payload.add(cmd)
}

// read finds what is wrong with what was typed. It leaves out the task, the
// payload and what the id may need decoding for.
func (f *thresholdFlags) read() (client.Threshold, error) {
	count, err := strconv.ParseInt(f.count, 10, 64) // out of range, it gives the nearest
	t := client.Threshold{
		Count: count, OnTimeout: client.OnTimeout(f.onTimeout), Mode: client.Mode(f.mode), MaxItems: f.maxItems,
	}
	switch {
	case f.id == "":
		return t, usagef("say which counter: --id signups, or a pattern as in --id 'login-fail:*'")
	case !f.given("count"):
		return t, usagef("say how many hits run the task: --count 100")
	case errors.Is(err, strconv.ErrSyntax):
		return t, usagef("--count %q is no whole number: want at least 1", f.count)
	case count < 1:
		return t, usagef("--count %s is too low: want at least 1", f.count)
	case count > wire.MaxCount:
		return t, usagef("--count %s is too high: want at most %d", f.count, int64(wire.MaxCount))
	case !f.given("within"):
		return t, usagef("say how long the hits have: --within 10m")
	case !slices.Contains([]client.OnTimeout{client.TimeoutFires, client.TimeoutDrops}, t.OnTimeout):
		return t, usagef("--on-timeout %q is unknown: want fire or drop", f.onTimeout)
	case !slices.Contains([]client.Mode{client.Repeat, client.Once}, t.Mode):
		return t, usagef("--mode %q is unknown: want repeat or once", f.mode)
	case f.maxItems < 1 || f.maxItems > wire.MaxItems:
		return t, usagef("--max-items %d: want 1 to %d", f.maxItems, wire.MaxItems)
	}
	size, err := config.ParseSize(f.maxBytes, wire.MaxItemBytes, "1MiB")
	if err != nil {
		return t, usagef("--max-bytes %w", err)
	}
	t.MaxBytes = int(size)
	return t, f.readTimes(&t)
}

func (f *thresholdFlags) readTimes(t *client.Threshold) error {
	for _, d := range []struct {
		name, text string
		to         *time.Duration
	}{{"within", f.within, &t.Within}, {"debounce", f.debounce, &t.Debounce}, {"max-wait", f.maxWait, &t.MaxWait}} {
		if !f.given(d.name) {
			continue
		}
		var err error
		*d.to, err = config.ParseDuration(d.text)
		switch {
		case errors.Is(err, config.ErrNegative), err == nil && *d.to < time.Millisecond:
			return usagef("--%s %s is too short: want 1ms or more", d.name, d.text)
		case err != nil:
			return usagef("--%s %w", d.name, err)
		}
	}
	switch {
	case f.given("max-wait") && !f.given("debounce"):
		return usagef("--max-wait goes only with --debounce: add that, or leave --max-wait out")
	case f.given("max-wait") && t.MaxWait < t.Debounce:
		return usagef("--max-wait %s is shorter than --debounce %s: change one of them", f.maxWait, f.debounce)
	case !f.given("max-wait") && t.Within < t.Debounce:
		return usagef("--debounce %s is longer than --within %s: change one of them, or add --max-wait", f.debounce, f.within)
	}
	if t.Debounce > 0 {
		t.MaxWait = cmp.Or(t.MaxWait, t.Within)
	}
	return nil
}

func (a *app) define(ctx context.Context, s *session, t client.Threshold, f thresholdFlags) error {
	var err error
	if t.ID, err = a.id(f.id); err != nil {
		return err
	}
	if t.Payload, err = a.payload(f.payload, s.cfg.Engine.MaxPayload); err != nil {
		return err
	}
	// Before the definition makes its task known, and a node counts.
	known, knownErr := s.known(ctx)
	counter, taken := s.takenBy(ctx, t.ID)
	outcome, err := s.DefineThreshold(ctx, t)
	if err != nil {
		return err
	}
	if err := a.printDefined(s, t, outcome); err != nil {
		return err
	}
	if knownErr == nil {
		a.warnUnknown(known, t.Task)
	}
	if taken {
		a.notef("warning: keys match %q already, as %q: those that hold an integer are counters from now on, "+
			"and are deleted when they fire; choose a pattern that only counters match", t.ID, counter)
	}
	return nil
}

// takenBy finds a key that is no job's and that a new pattern would make a
// counter. It looks for a second at most, and finds nothing if it fails: what it
// finds is only worth a warning.
func (s *session) takenBy(ctx context.Context, pattern string) (string, bool) {
	if !wire.IsPattern(pattern) {
		return "", false
	}
	if _, err := s.Threshold(ctx, pattern); !errors.Is(err, client.ErrNoThreshold) {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	space, err := wire.NewSpace(s.rdb)
	if err != nil {
		return "", false
	}
	for _, store := range space.All() {
		if id, found := takenIn(ctx, store, pattern); found {
			return id, true
		}
	}
	return "", false
}

func takenIn(ctx context.Context, store *wire.Store, pattern string) (string, bool) {
	rdb, err := store.Server(ctx)
	if err != nil {
		return "", false
	}
	for cursor := uint64(0); ; {
		keys, next, err := rdb.ScanType(ctx, cursor, store.Glob(pattern), 1000, "string").Result()
		if err != nil {
			return "", false
		}
		if id, found := foreignInteger(ctx, rdb, store.Names, keys); found {
			return id, true
		}
		if cursor = next; cursor == 0 {
			return "", false
		}
	}
}

// foreignInteger finds one of the keys that holds an integer and has no class
// key, as jobs and open windows have; it returns its id.
func foreignInteger(ctx context.Context, rdb redis.UniversalClient, names wire.Names, keys []string) (string, bool) {
	values, classes := make([]*redis.StringCmd, len(keys)), make([]*redis.IntCmd, len(keys))
	// An answer that is an error leaves no text, which is no integer.
	_, _ = rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			id, _ := names.IDOfFuse(key)
			classes[i] = p.Exists(ctx, names.Class(id))
			values[i] = p.GetRange(ctx, key, 0, 20) // an int64 has 20 characters at most
		}
		return nil
	})
	for i, key := range keys {
		text := values[i].Val()
		n, err := strconv.ParseInt(text, 10, 64)
		isInteger := err == nil && strconv.FormatInt(n, 10) == text
		id, isFuse := names.IDOfFuse(key)
		if isInteger && classes[i].Val() == 0 && isFuse && wire.CheckID(id) == nil {
			return id, true
		}
	}
	return "", false
}

func (a *app) printDefined(s *session, t client.Threshold, outcome client.Defined) error {
	if s.json {
		return a.printJSON(view.DefinedOf(t, outcome))
	}
	text := "defined %s: %s after %s\n"
	switch outcome {
	case client.DefinedReplaced:
		text = "replaced %s: now %s after %s\n"
	case client.DefinedSame:
		text = "was defined so before: %s: %s after %s\n"
	}
	return a.printf(text, view.Printable(t.ID), view.Printable(t.Task), view.Rule(t))
}

func (a *app) thresholdListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the thresholds, what they count and what they fired", Args: none,
		RunE: a.do(a.with(func(ctx context.Context, s *session, _ []string) error {
			all, err := s.Thresholds(ctx)
			if err != nil && len(all) == 0 {
				return err
			}
			return errors.Join(a.listThresholds(s, all), err)
		})),
	}
}

func (a *app) listThresholds(s *session, all []client.ThresholdInfo) error {
	switch {
	case s.json:
		for _, t := range all {
			if err := a.printJSON(view.ThresholdOf(t)); err != nil {
				return err
			}
		}
		return nil
	case len(all) == 0:
		return a.printf("no thresholds: define one as in %s threshold TASK --id signups --count 100 --within 10m\n", a.self)
	}
	return a.printThresholds(all)
}

func (a *app) thresholdRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID...",
		Short: "Remove thresholds",
		Long: `Remove thresholds by their ids or patterns. Windows that are open end as they
would have; "keyfuse cancel ID" closes one. Thresholds that are not there are told
one a line, and the others are removed.`,
		Args: atLeastOne("id or pattern"),
		RunE: a.do(a.with(func(ctx context.Context, s *session, args []string) error {
			ids, err := a.ids(args)
			if err != nil {
				return err
			}
			return a.each(s, ids, func(id string) error { return a.removeThreshold(ctx, s, id) })
		})),
	}
}

func (a *app) removeThreshold(ctx context.Context, s *session, id string) error {
	was, _ := s.Threshold(ctx, id) // one that can't be read can be removed
	if err := s.RemoveThreshold(ctx, id); err != nil {
		return err
	}
	if s.json {
		return a.printJSON(view.RemovedOf(id, was.Open))
	}
	switch was.Open {
	case 0:
		return a.printf("removed %s\n", view.Printable(id))
	case 1:
		return a.printf("removed %s; its open window ends as it would have, keyfuse cancel closes it\n", view.Printable(id))
	}
	return a.printf("removed %s; its %d open windows end as they would have, keyfuse cancel closes one\n", view.Printable(id), was.Open)
}
