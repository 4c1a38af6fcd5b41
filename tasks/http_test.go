package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

// received is a request as a server saw it.
type received struct {
	*http.Request
	body string
}

// newServer answers with the handler and hands over what it received.
func newServer(t *testing.T, answer http.HandlerFunc) (*httptest.Server, <-chan received) {
	requests := make(chan received, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- received{r, string(body)}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server, requests
}

// newHTTP makes the task with a client whose connections end with the test.
func newHTTP(t *testing.T, c HTTP) registry.Handler {
	t.Helper()
	if c.Client == nil {
		transport := newTransport()
		t.Cleanup(transport.CloseIdleConnections)
		c.Client = &http.Client{Transport: transport}
	}
	return must(t)(NewHTTP(c))
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestHTTPSendsThePayloadAndTellsOfTheRun(t *testing.T) {
	server, requests := newServer(t, status(http.StatusNoContent))
	task := newHTTP(t, HTTP{
		URL:     strings.Replace(server.URL, "http://", "http://me:pass@", 1) + "/hook?a=b",
		Headers: map[string]string{"x-api-key": "secret", "Host": "other.example"},
	})
	job := aJob()
	job.Count = 4
	if err := task.Handle(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	got := <-requests
	if got.Method != "POST" || got.URL.String() != "/hook?a=b" || got.body != `{"n":1}` || got.ContentLength != 7 || got.Host != "other.example" {
		t.Errorf("%s %s %q, length %d, host %s", got.Method, got.URL, got.body, got.ContentLength, got.Host)
	}
	for name, want := range map[string]string{
		"Keyfuse-Id": "order:42", "Keyfuse-Task": "cancel-order", "Keyfuse-Run-Id": "run-7",
		"Keyfuse-Attempt": "3", "Keyfuse-Due": "2026-12-01T09:00:00.005Z", "Keyfuse-Reason": "timer",
		"Keyfuse-Count": "4", "Idempotency-Key": "run-7", "Content-Type": "application/json",
		"User-Agent": "keyfuse", "X-Api-Key": "secret", "Webhook-Signature": "",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	if user, password, _ := got.BasicAuth(); user != "me" || password != "pass" {
		t.Errorf("basic auth %q %q", user, password)
	}
}

func TestHTTPChoosesTheContentType(t *testing.T) {
	server, requests := newServer(t, status(http.StatusOK))
	for _, c := range []struct{ payload, configured, want string }{
		{`[1]`, "", "application/json"},
		{"\x00\xff", "", "application/octet-stream"},
		{"", "", ""},
		{`[1]`, "text/csv", "text/csv"},
		{"", "text/csv", "text/csv"},
	} {
		task := newHTTP(t, HTTP{URL: server.URL, Method: "put", Headers: map[string]string{"content-type": c.configured}})
		job := aJob()
		job.Payload = []byte(c.payload)
		if err := task.Handle(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		got := <-requests
		if got.Header.Get("Content-Type") != c.want || got.ContentLength != int64(len(c.payload)) || got.Method != "PUT" {
			t.Errorf("%q as %q: %s, type %q, length %d", c.payload, c.configured, got.Method, got.Header.Get("Content-Type"), got.ContentLength)
		}
	}
}

func TestHTTPHostileIDsComeBackWholeAndInjectNothing(t *testing.T) {
	server, requests := newServer(t, status(http.StatusOK))
	task := newHTTP(t, HTTP{URL: server.URL, Secret: "s"})
	for _, id := range hostileIDs {
		job := aJob()
		job.ID, job.RunID = id, id
		if err := task.Handle(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		got := <-requests
		for _, name := range []string{"Keyfuse-Id", "Keyfuse-Run-Id", "Idempotency-Key", "Webhook-Id"} {
			if back, err := url.PathUnescape(got.Header.Get(name)); err != nil || back != id {
				t.Errorf("%s: %q came back as %q, %v", name, id, back, err)
			}
		}
		if got.Header.Get("X-Evil") != "" {
			t.Errorf("id %q injected a header", id)
		}
	}
}

func TestHTTPSignsRequestsWhenASecretIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got http.Header
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.Header
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})}
		task := newHTTP(t, HTTP{URL: "http://127.0.0.1", Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", Client: client})
		if err := task.Handle(t.Context(), aJob()); err != nil {
			t.Fatal(err)
		}
		// A bubble begins at 2000-01-01. Computed with openssl dgst -sha256 -mac HMAC.
		for name, want := range map[string]string{
			"webhook-id": "run-7", "webhook-timestamp": "946684800", "webhook-signature": "v1,DKPme6QboplTNmhoE1NKYITZn8ZTjCpQZH6X/cGPutk=",
		} {
			if value := got.Get(name); value != want {
				t.Errorf("%s is %q, want %q", name, value, want)
			}
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestHTTPAnswersDecideWhatBecomesOfTheRun(t *testing.T) {
	for code, want := range map[int]registry.Verdict{
		200: registry.VerdictDone, 201: registry.VerdictDone, 204: registry.VerdictDone, 299: registry.VerdictDone,
		301: registry.VerdictDead, 302: registry.VerdictDead, 304: registry.VerdictDead, 307: registry.VerdictDead,
		400: registry.VerdictDead, 401: registry.VerdictDead, 404: registry.VerdictDead, 410: registry.VerdictDead, 422: registry.VerdictDead,
		408: registry.VerdictRetry, 425: registry.VerdictRetry, 429: registry.VerdictRetry,
		500: registry.VerdictRetry, 502: registry.VerdictRetry, 503: registry.VerdictRetry, 599: registry.VerdictRetry,
		600: registry.VerdictDead,
	} {
		server, requests := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere?token=hidden")
			w.WriteHeader(code)
		})
		err := newHTTP(t, HTTP{URL: server.URL}).Handle(t.Context(), aJob())
		wantVerdict(t, err, want)
		if n := len(requests); n != 1 {
			t.Errorf("%d: %d requests", code, n)
		}
		if err != nil {
			wantContains(t, err.Error(), fmt.Sprintf("POST %s answered %d", server.URL, code))
			wantWithout(t, err.Error(), "hidden")
		}
	}
}

func TestHTTPFollowsRedirectsOnlyIfTheClientSaysHow(t *testing.T) {
	server, requests := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/final", http.StatusTemporaryRedirect)
		}
	})
	follow := &http.Client{
		Transport:     server.Client().Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return nil },
	}
	if err := newHTTP(t, HTTP{URL: server.URL, Client: follow}).Handle(t.Context(), aJob()); err != nil {
		t.Error(err)
	}
	if n := len(requests); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	err := newHTTP(t, HTTP{URL: server.URL, Client: server.Client()}).Handle(t.Context(), aJob())
	wantVerdict(t, err, registry.VerdictDead)
	wantContains(t, err.Error(), "307", "not followed")
}

func TestHTTPHonoursRetryAfterOnAnswersToBeRetried(t *testing.T) {
	for code, want := range map[int]registry.Verdict{429: registry.VerdictAfter, 503: registry.VerdictAfter, 400: registry.VerdictDead} {
		server, _ := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(code)
		})
		delay := wantVerdict(t, newHTTP(t, HTTP{URL: server.URL}).Handle(t.Context(), aJob()), want)
		if want == registry.VerdictAfter && delay != 90*time.Second {
			t.Errorf("%d: delay %s", code, delay)
		}
	}
}

func TestHTTPErrorQuotesTheAnswerBounded(t *testing.T) {
	server, _ := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "no\r\n\x00\xff"+strings.Repeat("x", 1<<20))
	})
	err := newHTTP(t, HTTP{URL: server.URL}).Handle(t.Context(), aJob())
	wantVerdict(t, err, registry.VerdictDead)
	wantContains(t, err.Error(), `400 Bad Request: "no\r\n\x00\xffxxx`, "…")
	if n := len(err.Error()); n > 500 {
		t.Errorf("the error has %d bytes", n)
	}
}

func TestHTTPErrorsShowNoSecret(t *testing.T) {
	echo, _ := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		bearer := strings.TrimPrefix(r.Header.Get("X-Token"), "Bearer ")
		_, _ = io.WriteString(w, strings.Join([]string{r.Header.Get("Authorization"), r.Header.Get("X-Token"), bearer, r.URL.RawQuery}, " "))
	})
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, address := range []string{echo.URL, closed.URL} {
		task := newHTTP(t, HTTP{
			URL:     strings.Replace(address, "http://", "http://admin:hunter2hunter2@", 1) + "/T0PSECRETPATH?token=querysecret",
			Secret:  "signingsecret",
			Headers: map[string]string{"X-Token": "Bearer tokensecret"},
		})
		err := task.Handle(t.Context(), aJob())
		wantVerdict(t, err, registry.VerdictRetry)
		wantContains(t, err.Error(), address)
		wantWithout(t, err.Error(), "hunter2", "T0PSECRETPATH", "querysecret", "signingsecret", "tokensecret", "YWRtaW46aHVudGVyMmh1bnRlcjI")
	}
}

func TestHTTPWithoutAnAnswerIsRetried(t *testing.T) {
	server, _ := newServer(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	wantVerdict(t, newHTTP(t, HTTP{URL: server.URL}).Handle(t.Context(), aJob()), registry.VerdictRetry)
}

func TestHTTPSendsOneRequestAnAttemptOverAKeptConnection(t *testing.T) {
	for _, payload := range []string{`{"n":1}`, ""} {
		var count atomic.Int64
		server, _ := newServer(t, func(http.ResponseWriter, *http.Request) {
			if count.Add(1) > 1 {
				panic(http.ErrAbortHandler)
			}
		})
		task := newHTTP(t, HTTP{URL: server.URL})
		job := aJob()
		job.Payload = []byte(payload)
		if err := task.Handle(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		wantVerdict(t, task.Handle(t.Context(), job), registry.VerdictRetry)
		if n := count.Load(); n != 2 {
			t.Errorf("payload %q: %d requests for two attempts", payload, n)
		}
	}
}

func TestHTTPReusesConnectionsAfterAnswersWithinTheLimit(t *testing.T) {
	for _, c := range []struct{ body, connections int }{{60 << 10, 1}, {1 << 20, 3}} {
		var opened atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, c.body))
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		server.Start()
		task := newHTTP(t, HTTP{URL: server.URL})
		for range 3 {
			if err := task.Handle(t.Context(), aJob()); err != nil {
				t.Fatal(err)
			}
		}
		server.Close()
		if n := int(opened.Load()); n != c.connections {
			t.Errorf("answers of %d bytes: %d connections, want %d", c.body, n, c.connections)
		}
	}
}

// endless is a body that never ends and never says anything.
type endless struct{ ctx context.Context }

func (b endless) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}
func (b endless) Close() error { return nil }

func TestHTTPAnswerThatNeverEndsIsJudgedByItsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for code, want := range map[int]registry.Verdict{200: registry.VerdictDone, 500: registry.VerdictRetry} {
			client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: code, Body: endless{r.Context()}}, nil
			})}
			start := time.Now()
			wantVerdict(t, newHTTP(t, HTTP{URL: "http://127.0.0.1", Client: client}).Handle(t.Context(), aJob()), want)
			if took := time.Since(start); took != answerWait {
				t.Errorf("%d took %s", code, took)
			}
		}
	})
}

func TestHTTPEndsWithTheCauseOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	server, _ := newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(errShutdown)
		<-r.Context().Done()
	})
	err := newHTTP(t, HTTP{URL: server.URL}).Handle(ctx, aJob())
	if !errors.Is(err, errShutdown) {
		t.Errorf("error %v", err)
	}
	wantVerdict(t, err, registry.VerdictRetry)
}

func TestHTTPOwnClientSendsAndTakesRedirectsForAnswers(t *testing.T) {
	server, requests := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		http.Redirect(w, r, "/final", http.StatusFound)
	})
	wantVerdict(t, must(t)(NewHTTP(HTTP{URL: server.URL})).Handle(t.Context(), aJob()), registry.VerdictDead)
	if n := len(requests); n != 1 {
		t.Errorf("%d requests", n)
	}
}
