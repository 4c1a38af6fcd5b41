package doctor

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// define defines thresholds and hits some ids.
func define(t *testing.T, rdb redis.UniversalClient, ids []string, hits ...string) {
	t.Helper()
	c, err := client.New(rdb, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := c.DefineThreshold(t.Context(), client.Threshold{ID: id, Task: "t", Count: 10, Within: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range hits {
		if _, err := c.Hit(t.Context(), client.Hit{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestThresholdsAndTheirCountersAreJudged(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	want(t, Run(t.Context(), rdb, Options{}), "thresholds", OK, "0 defined")
	define(t, rdb, []string{"c\x1b", "d", "p:*"}, "d", "p:1", "p:2")
	checks := Run(t.Context(), rdb, Options{})
	want(t, checks, "thresholds", Warn, `t (for "c\x1b")`, "keyfuse threshold")
	want(t, checks, "counters", OK, "3 count")
	want(t, checks, "notifications", Warn, "lacks $", "CONFIG SET notify-keyspace-events xE$")

	set(t, rdb, "INCR", "c\x1b")
	set(t, rdb, "PERSIST", "p:1")
	checks = Run(t.Context(), rdb, Options{})
	want(t, checks, "counters", Warn, "without a TTL", `2, as "c\x1b" (1), "p:1" (1)`, "keyfuse serve")
	want(t, checks, "immortal fuses", OK)
	alive(t, rdb, "n1", `{"Tasks":["t"]}`)
	checks = Run(t.Context(), rdb, Options{})
	want(t, checks, "counters", Warn, "without a TTL", "within a minute")
	want(t, checks, "thresholds", OK, "3 defined")

	set(t, rdb, "SET", "d", "12x")
	set(t, rdb, "DEL", "p:2")
	set(t, rdb, "LPUSH", "p:2", "1")
	set(t, rdb, "HSET", "keyfuse:thresholds", "bad\x1b", "?")
	set(t, rdb, "HSET", "keyfuse:thresholds", "worse", "")
	checks = Run(t.Context(), rdb, Options{})
	want(t, checks, "counters", Fail, "2, as", `"d" is no integer`, `"p:2" is a list`, "DEL")
	want(t, checks, "thresholds", Fail, `"bad\x1b"`, `"worse"`, "keyfuse threshold remove")
}

func TestManyWindowsAreCutAndSaySo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	ids := make([]string, 2000)
	for i := range ids {
		ids[i] = fmt.Sprintf("p:%d", i)
	}
	define(t, rdb, []string{"p:*"}, ids...)
	want(t, Run(t.Context(), rdb, Options{ScanTime: 1}), "counters", OK, "cut off after 1ns")
	want(t, Run(t.Context(), rdb, Options{}), "counters", OK, "2000 count")
}
