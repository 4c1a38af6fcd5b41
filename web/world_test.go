package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/web"
)

// token is one that is long enough.
const token = "0123456789abcdef0123456789abcdef"

// world is a server on a redis-server of its own.
type world struct {
	*testing.T
	c      *client.Client
	rdb    redis.UniversalClient
	site   *httptest.Server
	status *web.Status
	log    *lines
	token  string // that requests bear
}

func newWorld(t *testing.T, change ...func(*web.Config)) *world {
	t.Helper()
	rdb := redistest.Start(t).Client(t)
	c, err := client.New(rdb, client.Config{MaxPayload: 4096})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, c: c, rdb: rdb, status: web.NewStatus(), log: new(lines)}
	cfg := web.Config{
		Client: c, Redis: rdb, MaxPayload: 4096, Status: w.status, History: web.NewHistory(time.Now),
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&cfg)
	}
	w.token = cfg.Token
	server, err := web.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.site = httptest.NewServer(server)
	t.Cleanup(w.site.Close)
	return w
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func withToken(cfg *web.Config) { cfg.Token = token }

// answer is what came back.
type answer struct {
	*world
	status int
	header http.Header
	body   string
}

// call sends a request; headers are name, value, name, value, …
func (w *world) call(method, path, body string, headers ...string) answer {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.site.URL+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	}
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answer{w, resp.StatusCode, resp.Header, string(text)}
}

func (a answer) want(status int) answer {
	a.Helper()
	if a.status != status {
		a.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// json decodes an answer.
func (a answer) json(to any) {
	a.Helper()
	if err := json.Unmarshal([]byte(a.body), to); err != nil {
		a.Fatalf("%v in %s", err, a.body)
	}
}

// problem is the kind of the problem that was answered.
func (a answer) problem(status int) string {
	a.Helper()
	a.want(status)
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	a.json(&p)
	kind, ok := strings.CutPrefix(p.Type, "urn:keyfuse:problem:")
	if got := a.header.Get("Content-Type"); !ok || got != "application/problem+json" || p.Status != status || p.Title == "" || p.Detail == "" {
		a.Errorf("no whole problem document: %s %s", got, a.body)
	}
	return kind
}

func (w *world) schedule(specs ...client.Spec) {
	w.Helper()
	for _, spec := range specs {
		if _, err := w.c.Schedule(w.Context(), spec); err != nil {
			w.Fatal(err)
		}
	}
}

// pending says whether a job is, and when it is due.
func (w *world) pending(id string) (time.Time, bool) {
	w.Helper()
	jobs, err := w.c.Get(context.Background(), id)
	if err != nil || jobs[0].State != client.Pending {
		return time.Time{}, false
	}
	return jobs[0].Due, true
}

func equal[T comparable](w *world, what string, got, want T) {
	w.Helper()
	if got != want {
		w.Errorf("%s: got %v, want %v", what, got, want)
	}
}
