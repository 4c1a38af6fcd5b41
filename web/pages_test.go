package web_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

const formType = "application/x-www-form-urlencoded"

func (w *world) page(path string) string {
	w.Helper()
	a := w.call("GET", path, "").want(http.StatusOK)
	equal(w, "type", a.header.Get("Content-Type"), "text/html; charset=utf-8")
	return a.body
}

// submit sends a form, follows the answer, and gives the page that comes.
func (w *world) submit(path, form string) string {
	w.Helper()
	a := w.call("POST", path, form, "Content-Type", formType).want(http.StatusSeeOther)
	return w.page(a.header.Get("Location"))
}

// bury makes a dead letter of a job, as a handler that fails for good does.
func (w *world) bury(id, text string) {
	w.Helper()
	w.schedule(client.Spec{ID: id, Task: "mail", Payload: []byte(`{"a":1}`)})
	store, err := wire.NewStore(w.rdb, 0)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := store.Beat(w.Context(), wire.Pulse{Node: "n", First: true, Lease: time.Minute}); err != nil {
		w.Fatal(err)
	}
	seq := time.Now().UnixNano()
	claimed, err := store.Claim(w.Context(), wire.ClaimRequest{
		Node: "n", Seq: seq, Runs: 1, Bytes: 1 << 20, MaxPayload: 1 << 20, Tasks: []wire.Want{{Task: "mail", Runs: 1}},
	})
	if err != nil || len(claimed.Runs) != 1 {
		w.Fatalf("claimed %v, %v", claimed.Runs, err)
	}
	if _, err := store.Fail(w.Context(), "mail", []wire.Failure{{Run: claimed.Runs[0], Verdict: wire.Bury, Error: text}}); err != nil {
		w.Fatal(err)
	}
}

const hostile = `<script>alert("x")</script>'"&<img src=x onerror=alert(1)>`

func TestHostileTextStaysText(t *testing.T) {
	w := newWorld(t)
	w.bury(hostile+"dead", hostile)
	w.schedule(client.Spec{ID: hostile, Task: "mail", In: time.Hour, Payload: []byte(hostile)})
	if _, err := w.c.DefineThreshold(t.Context(), client.Threshold{ID: hostile + "count", Task: "mail", Count: 5, Within: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.c.Hit(t.Context(), client.Hit{ID: hostile + "count"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/", "/jobs", "/jobs?state=dead", "/thresholds", "/dead", "/tasks",
		"/jobs?prefix=" + url.QueryEscape(hostile), "/dead?task=mail&prefix=" + url.QueryEscape(hostile),
		"/jobs/" + url.PathEscape(hostile), "/jobs/" + url.PathEscape(hostile+"dead"), "/jobs/" + url.PathEscape(hostile+"count"),
		"/?done=" + url.QueryEscape(hostile),
	} {
		page := w.page(path)
		if strings.Contains(page, "<script>") || strings.Contains(page, "<img src=x") || strings.Contains(page, `alert("`) {
			t.Errorf("%s has it as it is", path)
		}
	}
	a := w.call("GET", "/jobs/"+url.PathEscape("none"+hostile), "").want(http.StatusNotFound)
	if strings.Contains(a.body, "<script>") {
		t.Error("an error has it as it is")
	}
}

func TestTheFormsDoWhatTheySay(t *testing.T) {
	w := newWorld(t)
	w.schedule(client.Spec{ID: "a/1", Task: "mail", In: time.Hour}, client.Spec{ID: "b", Task: "mail", In: time.Hour})
	if page := w.submit("/jobs/a%2F1/reschedule", "in=3h"); !strings.Contains(page, "It has another due time") {
		t.Error("rescheduling is not said")
	}
	if due, _ := w.pending("a/1"); time.Until(due) < 2*time.Hour {
		t.Errorf("due %s", due)
	}
	w.call("POST", "/jobs/a%2F1/reschedule", "in=soon", "Content-Type", formType).want(http.StatusUnprocessableEntity)
	if page := w.submit("/jobs/a%2F1/cancel", "back="+url.QueryEscape("/jobs?task=mail")); !strings.Contains(page, "Cancelled.") || !strings.Contains(page, ">b<") {
		t.Error("it does not come back to the list")
	}
	if _, ok := w.pending("a/1"); ok {
		t.Error("it is not cancelled")
	}
	w.call("POST", "/jobs/a%2F1/cancel", "", "Content-Type", formType).want(http.StatusNotFound)
	w.submit("/jobs/b/fire", "")
	if due, _ := w.pending("b"); time.Until(due) > time.Minute {
		t.Error("it is not fired")
	}
	w.submit("/tasks/mail/pause", "")
	if page := w.page("/tasks"); !strings.Contains(page, "/tasks/mail/resume") {
		t.Error("it is not paused")
	}
	w.submit("/tasks/mail/resume", "")
}

func TestDeadLettersAreRequeuedAndDeletedAfterAQuestion(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"job0", "job1", "job2", "job1"} { // the last is another run of the same id
		w.bury(id, "it failed")
	}
	page := w.page("/dead")
	field := func(id string) string {
		row := page[strings.Index(page, `href="/jobs/`+id+`"`):]
		_, rest, _ := strings.Cut(row, `name="run" value="`)
		value, _, _ := strings.Cut(rest, `"`)
		return value
	}
	w.submit("/dead/requeue", "run="+field("job0"))
	ask := w.call("POST", "/dead/delete", "of=job1&run="+field("job1"), "Content-Type", formType).want(http.StatusOK)
	if !strings.Contains(ask.body, "Delete the dead letter of job1 (run n.") || !strings.Contains(ask.body, `name="sure" value="yes"`) {
		t.Error("nobody is asked")
	}
	dead := func() int {
		list, err := w.c.List(t.Context(), client.Filter{State: client.Dead}, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Jobs)
	}
	equal(w, "dead", dead(), 3)
	w.submit("/dead/delete", "sure=yes&run="+field("job1"))
	equal(w, "dead", dead(), 2) // not the other one of its id
	w.call("POST", "/dead/requeue", "all=yes&task=mail", "Content-Type", formType).want(http.StatusOK)
	equal(w, "dead", dead(), 2)
	w.submit("/dead/requeue", "sure=yes&all=yes&task=mail")
	equal(w, "dead", dead(), 0)
	w.call("POST", "/dead/delete", "sure=yes", "Content-Type", formType).want(http.StatusUnprocessableEntity)
}

// follow is the stream of a page.
func (w *world) follow(path string) *bufio.Scanner {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), "GET", w.site.URL+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = resp.Body.Close() })
	return bufio.NewScanner(resp.Body)
}

// TestAPageFollowsWhatHappens reads the stream of a list until a job that was scheduled
// meanwhile is in it.
func TestAPageFollowsWhatHappens(t *testing.T) {
	w := newWorld(t)
	pages := 0
	for lines := w.follow("/jobs"); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || !strings.HasPrefix(data, `"`) {
			continue
		}
		var page string
		if err := json.Unmarshal([]byte(data), &page); err != nil {
			t.Fatal(err)
		}
		if pages++; pages == 1 {
			w.schedule(client.Spec{ID: "order:1", Task: "mail", In: time.Hour})
		} else if strings.Contains(page, "order:1") {
			return
		}
	}
	t.Error("the stream has ended without it")
}

// TestAPageThatCantBeMadeSaysSo reads the stream of a page while Redis goes away and comes
// back.
func TestAPageThatCantBeMadeSaysSo(t *testing.T) {
	w := newWorld(t)
	w.schedule(client.Spec{ID: "order:1", Task: "mail", In: time.Hour})
	gone := &away{err: io.EOF}
	w.rdb.AddHook(gone)
	want := []string{"event: page", "event: stale", "event: page"}
	for lines := w.follow("/jobs"); len(want) > 0 && lines.Scan(); {
		if lines.Text() == want[0] {
			want = want[1:]
			gone.on.Store(len(want) == 2)
		}
	}
	if len(want) > 0 {
		t.Errorf("the stream has ended without %q", want)
	}
}

func TestAnIDIsFoundWhateverItsState(t *testing.T) {
	w := newWorld(t)
	w.bury("order:7", "it failed")
	w.schedule(client.Spec{ID: "order:77", Task: "mail", In: time.Hour}, client.Spec{ID: "other", Task: "mail", In: time.Hour})
	page := w.page("/jobs?prefix=order:7")
	for _, want := range []string{">order:7<", ">order:77<", `class="state dead"`} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(page, ">other<") {
		t.Error("another one is found")
	}
	if page := w.page("/dead?prefix=order:77"); strings.Contains(page, ">order:77<") {
		t.Error("a pending job is among the dead letters")
	}
}

func TestStaticFiles(t *testing.T) {
	w := newWorld(t)
	for name, kind := range map[string]string{"keyfuse.css": "text/css", "keyfuse.js": "text/javascript", "icon.svg": "image/svg"} {
		a := w.call("GET", "/static/"+name, "").want(http.StatusOK)
		if !strings.HasPrefix(a.header.Get("Content-Type"), kind) {
			t.Errorf("%s is %s", name, a.header.Get("Content-Type"))
		}
	}
	w.call("GET", "/static/..%2Ftemplates%2Flayout.html", "").want(http.StatusNotFound)
}
