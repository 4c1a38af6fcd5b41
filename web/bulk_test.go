package web_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/web"
)

const ndjson = "application/x-ndjson"

// away is a Redis that fails all scripts while it is on.
type away struct {
	on  atomic.Bool
	err error
}

func (*away) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*away) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *away) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if a.on.Load() && strings.HasPrefix(cmd.Name(), "eval") {
			cmd.SetErr(a.err)
			return a.err
		}
		return next(ctx, cmd)
	}
}

func (w *world) count() int64 {
	w.Helper()
	stats, err := w.c.Stats(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	n := int64(0)
	for _, task := range stats.Tasks {
		n += task.Pending
	}
	return n
}

// jobs are lines of jobs without ids, with one that is wrong before the last.
func jobs(n int) string {
	const job = `{"task":"mail","in":"1h"}` + "\n"
	return strings.Repeat(job, n-1) + "nonsense\n" + job
}

func TestABulkThatRedisEndedIsDoneWhenItIsSentAgain(t *testing.T) {
	for kind, err := range map[string]error{
		"redis": &net.OpError{Op: "read", Err: errors.New("away")}, "moving": client.ErrMoving, "format": client.ErrFormat,
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			gone := &away{err: err}
			w.rdb.AddHook(gone)
			gone.on.Store(true)
			a := w.call("POST", "/v1/jobs", jobs(3), "Content-Type", ndjson, "Idempotency-Key", "k").want(http.StatusOK)
			if lines := strings.Split(strings.TrimSpace(a.body), "\n"); len(lines) != 1 || !strings.Contains(lines[0], "problem:"+kind+`"`) || !strings.Contains(lines[0], `"line":1`) {
				t.Errorf("answered %s: want the line that Redis failed, and nothing behind it", a.body)
			}
			gone.on.Store(false)
			for _, replayed := range []string{"", "true"} {
				a = w.call("POST", "/v1/jobs", jobs(3), "Content-Type", ndjson, "Idempotency-Key", "k").want(http.StatusOK)
				equal(w, "replayed", a.header.Get("Idempotency-Replayed"), replayed)
				equal(w, "lines", strings.Count(a.body, "\n"), 4)
				equal(w, "jobs", w.count(), 3)
			}
		})
	}
}

// If the daemon dies between the jobs and the note of them, the key still finds them.
func TestABulkWithoutANoteFindsItsJobs(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		w.call("POST", "/v1/jobs", jobs(300), "Content-Type", ndjson, "Idempotency-Key", "k").want(http.StatusOK)
		equal(w, "jobs", w.count(), 300)
		keys, err := w.rdb.Keys(t.Context(), "keyfuse:idempotency:*").Result()
		if err != nil || len(keys) != 1 {
			t.Fatalf("keys: %v, %v", keys, err)
		}
		w.rdb.Del(t.Context(), keys...)
	}
}

func TestAnEmptyBulkIsNone(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		a := w.call("POST", "/v1/jobs", "\n", "Content-Type", ndjson, "Idempotency-Key", "k").want(http.StatusOK)
		equal(w, "answer", a.body, "")
	}
	w.call("POST", "/v1/jobs", "", "Content-Type", ndjson).want(http.StatusOK)
}

func TestABulkThatIsTooLongDoesNothing(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{
		`{"task":"mail","in":"1h"}` + strings.Repeat("\n", 100_001),
		`{"task":"mail","in":"1h"}` + "\n" + strings.Repeat("x", 32<<20),
	} {
		equal(w, "problem", w.call("POST", "/v1/jobs", body, "Content-Type", ndjson).problem(http.StatusRequestEntityTooLarge), "too-large")
		equal(w, "jobs", w.count(), 0)
	}
}

func TestABulkThatBreaksOffDoesNothing(t *testing.T) {
	w := newWorld(t)
	conn, err := net.Dial("tcp", w.site.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const line = `{"task":"mail","in":"1h"}` + "\n"
	fmt.Fprintf(conn, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", ndjson, 10*len(line), strings.Repeat(line, 3))
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	w.site.Close() // waits for the request
	equal(w, "jobs", w.count(), 0)
}

func TestAKeyIsOneIDPrefixsOwn(t *testing.T) {
	w := newWorld(t)
	ids := make(map[string]bool)
	for _, prefix := range []string{"a:", "b:"} {
		c, err := client.New(w.rdb, client.Config{IDPrefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		other := newWorld(t, func(cfg *web.Config) { cfg.Client, cfg.Redis, cfg.IDPrefix = c, w.rdb, prefix })
		a := other.call("POST", "/v1/jobs", `{"task":"mail","in":"1h"}`, "Idempotency-Key", "k").want(http.StatusCreated)
		ids[a.header.Get("Location")] = true
	}
	equal(w, "jobs", len(ids), 2)
}
