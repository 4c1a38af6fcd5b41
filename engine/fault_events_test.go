package engine_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/registry"
)

const flags = "notify-keyspace-events"

func lostFlags(w *world) {
	log := &record{}
	restored := log.lineWith("turned on keyspace notifications")
	n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Logger: log.logger()})
	await(w, n.sweeps, "the first sweep")
	if err := w.rdb.ConfigSet(w.Context(), flags, "").Err(); err != nil {
		w.Fatal(err)
	}
	gone := time.Now()
	w.set("bare", "x", time.Millisecond)
	w.set("class:bare", "mail", 0)
	if why := await(w, n.degraded, "the loss to be noticed"); why == "" {
		w.Error("degraded without a reason")
	}
	// The canary that was laid before counts from its own heartbeat.
	if took, beat := time.Since(gone), w.lease/5; !w.real && took > 3*beat {
		w.Errorf("noticed after %s, want within 2 to 3 heartbeats of %s", took, beat)
	}
	await(w, restored, "the flags to be set again")
	if why := await(w, n.degraded, "events to come again"); why != "" {
		w.Errorf("degraded twice: %s", why)
	}
	if f := n.fired(); f.Job.ID != "bare" || f.Late < 0 {
		w.Errorf("the job that expired in between: %+v", f)
	}
	n.hears()
	if len(n.degraded) > 0 {
		w.Errorf("told once more: %q", <-n.degraded)
	}
}

// hears checks that events fire bare jobs of task mail. A sweep that was asked
// for before may find one first, but not one after the other.
func (n *node) hears() {
	n.w.Helper()
	for i := range 20 {
		id := fmt.Sprint("heard", i)
		n.w.setBare(id, "mail", 100*time.Millisecond)
		f := n.fired()
		if f.Job.ID != id {
			n.w.Errorf("fired %+v", f)
		}
		if f.Source == "event" {
			return
		}
	}
	n.w.Error("no event fired a job")
}

func flagsLostAgain(w *world) {
	log := &record{}
	n := w.start(tasks(nil), engine.Config{Logger: log.logger()})
	const rounds = 5
	for range rounds {
		if err := w.rdb.ConfigSet(w.Context(), flags, "").Err(); err != nil {
			w.Fatal(err)
		}
		await(w, n.degraded, "the loss to be noticed")
		await(w, n.degraded, "events to come again")
	}
	if lines := log.lines.Load(); lines > 2+3*rounds {
		w.Errorf("%d lines for %d losses:\n%s", lines, rounds, log)
	}
}

// as is a client of another user, which the test's server gets.
func (w *world) as(name string, rules ...any) *redis.Client {
	w.Helper()
	if err := w.rdb.Do(w.Context(), append([]any{"ACL", "SETUSER", name, "on", ">pw", "~*", "&*", "+@all"}, rules...)...).Err(); err != nil {
		w.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{
		Addr: w.addr, Username: name, Password: "pw", ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	w.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestWithoutConfigTheCanaryProvesThatEventsArrive(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		n := w.startOn(w.as("d", "-config"), tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
		if why := await(w, n.degraded, "the warning"); !strings.Contains(why, "allow CONFIG") {
			w.Errorf("warned: %s", why)
		}
		if why := await(w, n.degraded, "the canary"); why != "" {
			w.Errorf("told again: %s", why)
		}
		n.hears()
	})
}

func TestWithoutConfigAndFlagsTheLogStaysShort(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		if err := w.rdb.ConfigSet(w.Context(), flags, "").Err(); err != nil {
			w.Fatal(err)
		}
		log, rdb, dials := &record{}, w.as("d", "-config"), make(dialed, 1000)
		rdb.AddHook(dials)
		n := w.startOn(rdb, tasks(map[string]registry.Func{"mail": nop}), engine.Config{Logger: log.logger()})
		await(w, n.sweeps, "the first sweep")
		for range 6 { // each time that the canary was not heard there is a new subscription
			await(w, dials, "a new connection")
		}
		// One silence may ask for another sweep, the same one that goes on may not.
		if len(n.sweeps) > 1 {
			w.Errorf("%d more sweeps", len(n.sweeps))
		}
		lines := 0
		for line := range strings.Lines(log.String()) {
			if !strings.Contains(line, "for=heartbeat") { // a slow machine's heartbeat may miss its fifth of a second
				lines++
			}
		}
		if lines > 2 {
			w.Errorf("%d lines:\n%s", lines, log)
		}
	})
}

func TestRequiredEventsThatCannotBeHadAreAnError(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		if err := w.rdb.ConfigSet(w.Context(), flags, "").Err(); err != nil {
			w.Fatal(err)
		}
		e, err := engine.New(w.as("d", "-config"), tasks(nil), engine.Config{Notifications: engine.Require, Logger: (&record{}).logger()})
		if err != nil {
			w.Fatal(err)
		}
		err = e.Run(w.Context())
		if err == nil || !strings.Contains(err.Error(), flags+" Ex") || !strings.Contains(err.Error(), "redis.conf") {
			w.Errorf("Run: %v; want one that says what to do", err)
		}
	})
}

func TestWithoutChannelsTheRuleIsNamedAndTheIndexFires(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		rdb := w.as("d", "resetchannels")
		log := &record{}
		n := w.startOn(rdb, tasks(map[string]registry.Func{"mail": nop}), engine.Config{Logger: log.logger()})
		const rule = `ACL SETUSER d +subscribe "&keyfuse:wake:0" "&__keyevent@0__:expired"`
		if why := await(w, n.degraded, "the reason"); !strings.Contains(why, rule) {
			w.Errorf("degraded: %s; want the rule %s", why, rule)
		}
		jobs, err := client.New(rdb, client.Config{})
		if err != nil {
			w.Fatal(err)
		}
		for i := range 5 { // PUBLISH is forbidden as well
			s, err := jobs.Schedule(w.Context(), client.Spec{ID: fmt.Sprint(i), Task: "mail", In: 3 * w.lease / 5})
			if err != nil {
				w.Fatal(err)
			}
			if f := n.fired(); f.Job.ID != s.ID || f.Late < 0 || f.Late > time.Second {
				w.Errorf("fired %+v", f)
			}
		}
		if err := w.rdb.Do(w.Context(), "ACL", "SETUSER", "d", "&keyfuse:wake:0", "&__keyevent@0__:expired").Err(); err != nil {
			w.Fatal(err)
		}
		if why := await(w, n.degraded, "events, now that they are allowed"); why != "" {
			w.Errorf("told: %s", why)
		}
	})
}

func TestForcedReconnectsLeaveOneSubscription(t *testing.T) {
	t.Parallel()
	onRedisWith(t, []string{"--maxclients", "20"}, func(w *world) {
		log := &record{}
		back := log.lineWith(`works again" for=listening`)
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{Lease: calm, Logger: log.logger()})
		for range 50 {
			if killed, err := w.rdb.ClientKillByFilter(w.Context(), "TYPE", "pubsub").Result(); err != nil || killed != 1 {
				w.Fatalf("killed %d subscriptions, %v", killed, err)
			}
			await(w, back, "the next subscription")
		}
		list, err := w.rdb.Do(w.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
		if err != nil || strings.Count(list, "\n") != 1 {
			w.Errorf("subscriptions left: %v\n%s", err, list)
		}
		w.schedule(client.Spec{ID: "a", Task: "mail"})
		n.fired()
	})
}

// onRedisWith is onRedis with arguments for redis-server.
func onRedisWith(t *testing.T, args []string, test func(w *world)) {
	onServer(t, redistest.Start(t, args...), test)
}

// dialed tells of each connection that a client makes.
type dialed chan struct{}

func (d dialed) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d <- struct{}{}
		return next(ctx, network, addr)
	}
}
func (d dialed) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (d dialed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
