package doctor

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/embedded"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// find is the check of a name.
func find(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no check %q in %+v", name, checks)
	}
	return checks[i]
}

// want fails unless a check has a status and its text and fix hold some words.
func want(t *testing.T, checks []Check, name string, status Status, words ...string) {
	t.Helper()
	c := find(t, checks, name)
	if c.Status != status {
		t.Errorf("%s: %s, want %s: %s", name, c.Status, status, c.Detail)
	}
	for _, word := range words {
		if !strings.Contains(c.Detail+"\n"+c.Fix, word) {
			t.Errorf("%s says nothing of %q: %s; %s", name, word, c.Detail, c.Fix)
		}
	}
	if c.Status != OK && c.Fix == "" {
		t.Errorf("%s does not say how to mend it", name)
	}
}

func set(t *testing.T, rdb redis.UniversalClient, args ...any) {
	t.Helper()
	if err := rdb.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func spaceOf(t *testing.T, rdb redis.UniversalClient) *wire.Space {
	t.Helper()
	space, err := wire.NewSpace(rdb)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// alive makes a node that holds a lease of all partitions and says something of itself.
func alive(t *testing.T, rdb redis.UniversalClient, name, info string) {
	t.Helper()
	for _, store := range spaceOf(t, rdb).All() {
		set(t, rdb, "ZADD", store.Of("nodes"), time.Now().Add(time.Minute).UnixMilli(), name)
		set(t, rdb, "HSET", store.Of("info"), name, info)
	}
}

func schedule(t *testing.T, rdb redis.UniversalClient, specs ...client.Spec) {
	t.Helper()
	c, err := client.New(rdb, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		if _, err := c.Schedule(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAGoodRedisPassesEveryCheck(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no", "--maxmemory", "100mb", "--notify-keyspace-events", "Ex$")
	rdb := s.Client(t)
	alive(t, rdb, "n1", `{"Tasks":["t"]}`)
	schedule(t, rdb, client.Spec{ID: "a", Task: "t", In: time.Hour})
	define(t, rdb, []string{"c", "p:*", "unused"}, "c", "p:1")
	for _, c := range Run(t.Context(), rdb, Options{}) {
		if c.Status != OK || c.Fix != "" {
			t.Errorf("%+v", c)
		}
	}
	if n, _ := rdb.Exists(t.Context(), "a", "class:a").Result(); n != 2 {
		t.Error("the doctor changed the job")
	}
}

func TestBadSettingsFailWithTheirFix(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--notify-keyspace-events", "Kg", "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl",
		"--client-output-buffer-limit", "pubsub 128kb 64kb 60")
	rdb := s.Client(t)
	checks := Run(t.Context(), rdb, Options{})
	want(t, checks, "redis", OK)
	want(t, checks, "permissions", OK)
	want(t, checks, "notifications", Fail, "lacks Ex", "CONFIG SET notify-keyspace-events", "Ex", "redis.conf")
	want(t, checks, "events", Fail, "no event")
	want(t, checks, "eviction", Fail, "volatile-ttl", "CONFIG SET maxmemory-policy noeviction")
	want(t, checks, "persistence", Warn, "loses all jobs", "appendonly yes")
	want(t, checks, "pubsub buffer", Warn, "131072", "pubsub 256mb 64mb 60")
	want(t, checks, "nodes", Warn, "keyfuse serve")

	set(t, rdb, "CONFIG", "SET", "maxmemory", "0", "save", "3600 1")
	checks = Run(t.Context(), rdb, Options{NoNotifications: true})
	want(t, checks, "eviction", Warn, "maxmemory is not set")
	want(t, checks, "persistence", Warn, "only snapshots")
	want(t, checks, "notifications", OK, "switched off")
	want(t, checks, "events", OK, "switched off")
}

func TestWhatMayNotBeSeenIsNotTakenForWell(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	set(t, s.Client(t), "ACL", "SETUSER", "managed", "on", ">p", "~*", "&*", "+@all", "-config", "-info", "-acl")
	rdb := s.Client(t, func(o *redis.Options) { o.Username, o.Password = "managed", "p" })
	checks := Run(t.Context(), rdb, Options{})
	for _, name := range []string{"redis", "notifications", "eviction", "persistence", "pubsub buffer"} {
		want(t, checks, name, Warn, "can't see")
	}
	want(t, checks, "permissions", OK)
	want(t, checks, "events", OK)
}

func TestAReplicaIsNamedAsOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	set(t, rdb, "REPLICAOF", "127.0.0.1", "1")
	checks := Run(t.Context(), rdb, Options{})
	want(t, checks, "redis", Fail, "replica", "redis.url", "redis.master_name")
	want(t, checks, "events", Fail, "READONLY")
}

func TestARedisThatIsAwayIsTheOnlyCheck(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	s.Stop()
	checks := Run(t.Context(), rdb, Options{})
	if len(checks) != 1 {
		t.Errorf("%d checks: %+v", len(checks), checks)
	}
	want(t, checks, "redis", Fail, "can't be reached", "start Redis")
}

func TestJobsThatWaitForEverAreListed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	set(t, rdb, "SET", "immortal\x1b", "x")
	set(t, rdb, "SET", "class:immortal\x1b", "t payload")
	set(t, rdb, "SET", "class:empty", "")
	set(t, rdb, "SET", "class:noname", "$ payload")
	set(t, rdb, "SADD", "class:set", "t")
	set(t, rdb, "SET", "class:class:x", "t")
	set(t, rdb, "SET", "class:well", "t", "EX", "100")
	set(t, rdb, "SET", "well", "t", "EX", "100")
	checks := Run(t.Context(), rdb, Options{})
	want(t, checks, "immortal fuses", Warn, "wait for ever: 1, as", `"immortal\x1b" (t)`, "PEXPIRE")
	want(t, checks, "class keys", Warn, "make no job: 4, as")
	checks = Run(t.Context(), rdb, Options{IDPrefix: "we"})
	want(t, checks, "immortal fuses", OK)
	want(t, checks, "class keys", OK, "all 1 make jobs")
}

func TestALongScanIsCutAndSaysSo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 2000 {
			p.Do(t.Context(), "SET", "class:"+string(rune('a'+i%26))+time.Duration(i).String(), "t")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, Run(t.Context(), rdb, Options{ScanTime: 1}), "class keys", OK, "cut off after 1ns")
}

func TestTasksNodesAndDeadLettersAreJudged(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	alive(t, rdb, "n1", `{"Tasks":["t"],"Degraded":"no permission"}`)
	schedule(t, rdb, client.Spec{ID: "a", Task: "typo", In: time.Hour}, client.Spec{ID: "b", Task: "t", In: time.Hour})
	checks := Run(t.Context(), rdb, Options{})
	want(t, checks, "nodes", Warn, "n1: no permission")
	want(t, checks, "tasks", Warn, "typo (1)", "keyfuse list --task")
	want(t, checks, "overdue", OK)
	want(t, checks, "dead letters", OK)
	want(t, checks, "format", OK, "no daemon has used")

	set(t, rdb, "DEL", "b")
	set(t, rdb, "ZADD", "keyfuse:due:t", "1000", "b")
	set(t, rdb, "ZADD", "keyfuse:dead:t", "1000", "run1")
	set(t, rdb, "SET", "keyfuse:format", "999")
	checks = Run(t.Context(), rdb, Options{})
	want(t, checks, "overdue", Warn, "t: 1, by up to")
	want(t, checks, "dead letters", Warn, "t: 1", "keyfuse dead")
	want(t, checks, "format", Fail, `"999"`)

	set(t, rdb, "SADD", "keyfuse:paused", "t")
	set(t, rdb, "ZREM", "keyfuse:due:typo", "a")
	checks = Run(t.Context(), rdb, Options{})
	want(t, checks, "overdue", OK)
	want(t, checks, "tasks", Warn, "paused: t", "keyfuse resume")
}

func TestTheEmbeddedRedisIsWell(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(embedded.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // it keeps nothing
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close() //nolint:errcheck // all answers are in
	alive(t, rdb, "n1", `{"Tasks":["t"]}`)
	define(t, rdb, []string{"c"}, "c")
	set(t, rdb, "CONFIG", "SET", "notify-keyspace-events", "Ex$") // as its daemon does then
	for _, c := range Run(t.Context(), rdb, Options{Embedded: true}) {
		if c.Status != OK {
			t.Errorf("%+v", c)
		}
	}
}

func TestClocksThatDifferByMoreThanASecondAreWarnedOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ahead, trip time.Duration
		want        Status
	}{
		{0, time.Millisecond, OK},
		{time.Second, 0, OK},
		{-time.Second, 0, OK},
		{1100 * time.Millisecond, time.Millisecond, Warn},
		{-5 * time.Minute, time.Millisecond, Warn},
		{1100 * time.Millisecond, time.Second, OK}, // it can't be known better
	} {
		if got := judgeClock(c.ahead, c.trip); got.Status != c.want {
			t.Errorf("%s ahead, %s round trip: %+v, want %s", c.ahead, c.trip, got, c.want)
		}
	}
	if got := judgeClock(-5*time.Minute, 0); !strings.Contains(got.Detail, "5m0s behind") {
		t.Error(got.Detail)
	}
}

func TestFlagsNeedEAndXAndForThresholdsStrings(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string][2]Status{ // without and with thresholds
		"": {Fail, Fail}, "E": {Fail, Fail}, "x": {Fail, Fail}, "Kx": {Fail, Fail}, "AK": {Fail, Fail}, "E$": {Fail, Fail},
		"Ex": {OK, Warn}, "xE": {OK, Warn}, "AE": {OK, OK}, "AKE": {OK, OK}, "Exqz": {OK, Warn}, "Ex$": {OK, OK}, "$glxE": {OK, OK},
	} {
		for i, counting := range []bool{false, true} {
			if got := judgeFlags(flags, counting); got.Status != want[i] {
				t.Errorf("%q, thresholds %t: %+v, want %s", flags, counting, got, want[i])
			}
		}
	}
	if got := judgeFlags("K", true); !strings.Contains(got.Fix, "CONFIG SET notify-keyspace-events KEx$\n") {
		t.Error(got.Fix)
	}
}

func TestAnEndedContextEndsTheExam(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, Run(ctx, s.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true }), Options{}), "redis", Fail)
}
