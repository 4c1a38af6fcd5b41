package web_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/web"
	"github.com/keyfuse-io/keyfuse/web/metrics"
)

// site is a server on a redis-server with the configuration that is shipped.
func site(b *testing.B) (*client.Client, *httptest.Server) {
	rdb := redistest.StartConfig(b, "../redis.conf").Client(b)
	c, err := client.New(rdb, client.Config{})
	if err != nil {
		b.Fatal(err)
	}
	server, err := web.New(web.Config{
		Client: c, Redis: rdb, MaxPayload: 1 << 20, Status: web.NewStatus(), History: web.NewHistory(time.Now),
		Metrics: metrics.New(c, "").Handler(slog.New(slog.DiscardHandler)), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ts := httptest.NewServer(server)
	b.Cleanup(ts.Close)
	return c, ts
}

const callers = 16

// BenchmarkSchedule is what POST is compared with: both by 16 callers.
func BenchmarkSchedule(b *testing.B) {
	c, _ := site(b)
	var n atomic.Int64
	b.SetParallelism(callers / 2)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := c.Schedule(b.Context(), client.Spec{ID: fmt.Sprint("job", n.Add(1)), Task: "mail", In: time.Hour}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPost(b *testing.B) {
	_, ts := site(b)
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	hc := &http.Client{Transport: transport}
	var n atomic.Int64
	b.SetParallelism(callers / 2)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			body := fmt.Appendf(nil, `{"id":"job%d","task":"mail","in":"1h"}`, n.Add(1))
			resp, err := hc.Post(ts.URL+"/v1/jobs", "application/json", bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusCreated {
				b.Fatal(resp.Status, err)
			}
			_ = resp.Body.Close()
		}
	})
}

// BenchmarkPages reads the overview, a list and the metrics beside a million pending
// jobs.
func BenchmarkPages(b *testing.B) {
	c, ts := site(b)
	const pending = 1_000_000
	specs := func(yield func(client.Spec) bool) {
		for i := range pending {
			if !yield(client.Spec{ID: fmt.Sprint("job", i), Task: fmt.Sprint("task", i%10), In: time.Duration(i) * time.Second}) {
				return
			}
		}
	}
	for _, r := range c.ScheduleMany(b.Context(), specs) {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
	for _, path := range []string{"/", "/jobs", "/jobs?task=task3&prefix=job", "/metrics", "/v1/stats"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				resp, err := http.Get(ts.URL + path)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
					b.Fatal(resp.Status, err)
				}
				_ = resp.Body.Close()
			}
		})
	}
}
