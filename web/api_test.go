package web_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
	"github.com/keyfuse-io/keyfuse/web"
)

func TestAJobFromScheduleToCancel(t *testing.T) {
	w := newWorld(t)
	a := w.call("POST", "/v1/jobs", `{"id":"a/b c%?","task":"mail","in":"30m","payload":"hello"}`).want(http.StatusCreated)
	path := a.header.Get("Location")
	equal(w, "location", path, "/v1/jobs/a%2Fb%20c%25%3F")
	var job view.Job
	w.call("GET", path, "").want(http.StatusOK).json(&job)
	equal(w, "job", fmt.Sprint(job.ID, job.Task, job.State, job.Payload), "a/b c%?mailpendinghello")
	before, _ := w.pending("a/b c%?")
	w.call("PATCH", path, `{"in":"2h"}`).want(http.StatusOK)
	if after, _ := w.pending("a/b c%?"); after.Sub(before) < 80*time.Minute {
		t.Errorf("due %s and then %s", before, after)
	}
	w.call("PATCH", path, `{"at":"2030-01-01T00:00:00Z"}`).want(http.StatusOK).json(&job)
	equal(w, "due", job.Due, "2030-01-01T00:00:00.000Z")
	w.call("POST", path+"/fire", "").want(http.StatusOK)
	if due, ok := w.pending("a/b c%?"); !ok || due.After(time.Now().Add(time.Minute)) {
		t.Errorf("due %s after it was fired", due)
	}
	w.call("DELETE", path, "").want(http.StatusOK)
	equal(w, "gone", w.call("GET", path, "").problem(http.StatusNotFound), "not-found")
}

func TestAnyBytesAreAnID(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"\xff\x00\n", "..", ".", "//", "a/../b", "<script>", strings.Repeat("é", 200)} {
		encoded := base64.StdEncoding.EncodeToString([]byte(id))
		w.call("POST", "/v1/jobs", `{"id_base64":"`+encoded+`","task":"t","in":"1h"}`).want(http.StatusCreated)
		path := "/v1/jobs/" + strings.ReplaceAll(url.PathEscape(id), ".", "%2E")
		var job view.Job
		w.call("GET", path, "").want(http.StatusOK).json(&job)
		if job.ID != id && job.IDBase64 != encoded {
			t.Errorf("%q is answered as %+v", id, job)
		}
		w.call("DELETE", path, "").want(http.StatusOK)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	w := newWorld(t)
	w.schedule(client.Spec{ID: "there", Task: "mail", In: time.Hour})
	for _, c := range []struct {
		method, path, body string
		status             int
		kind               string
	}{
		{"POST", "/v1/jobs", `{"id":"there","task":"mail","in":"1h"}`, 409, "exists"},
		{"POST", "/v1/jobs", `{"task":"mail"}`, 422, "invalid"},
		{"POST", "/v1/jobs", `{"task":"mail","in":"1h","at":"2030-01-01T00:00:00Z"}`, 422, "invalid"},
		{"POST", "/v1/jobs", `{"task":"mail","in":"90"}`, 422, "invalid"},
		{"POST", "/v1/jobs", `{"task":"a b","in":"1h"}`, 422, "invalid"},
		{"POST", "/v1/jobs", `{"task":"mail","in":"1h","if_exists":"maybe"}`, 422, "invalid"},
		{"POST", "/v1/jobs", `{"task":"mail","in":"1h","payload":"` + strings.Repeat("x", 4097) + `"}`, 422, "invalid"},
		{"POST", "/v1/jobs", `{"task":"mail","in":"1h","when":"now"}`, 400, "malformed"},
		{"POST", "/v1/jobs", `{"task":5}`, 400, "malformed"},
		{"POST", "/v1/jobs", `{`, 400, "malformed"},
		{"POST", "/v1/jobs", "{\"id\":\"\xff\",\"task\":\"mail\",\"in\":\"1h\"}", 400, "malformed"},
		{"POST", "/v1/jobs", `{"payload":"` + strings.Repeat("x", 50_000) + `"}`, 413, "too-large"},
		{"POST", "/v1/jobs", `id=a`, 415, "content-type"},
		{"GET", "/v1/jobs?state=waiting", "", 422, "invalid"},
		{"GET", "/v1/jobs?limit=0", "", 422, "invalid"},
		{"GET", "/v1/jobs?limit=1001", "", 422, "invalid"},
		{"GET", "/v1/jobs?tsak=mail", "", 422, "invalid"},
		{"GET", "/v1/jobs?task=x;state=dead", "", 422, "invalid"},
		{"GET", "/v1/jobs?cursor=x", "", 400, "cursor"},
		{"GET", "/v1/jobs/none", "", 404, "not-found"},
		{"PATCH", "/v1/jobs/none", `{"in":"1h"}`, 404, "not-found"},
		{"PATCH", "/v1/jobs/there", `{}`, 422, "invalid"},
		{"PATCH", "/v1/jobs/there", ``, 415, "content-type"},
		{"PATCH", "/v1/jobs/there", `{"in":"-1h"}`, 422, "invalid"},
		{"DELETE", "/v1/jobs/none", "", 404, "not-found"},
		{"POST", "/v1/jobs/none/fire", "", 404, "not-found"},
		{"POST", "/v1/thresholds", `{"id":"c","task":"mail","count":0,"within":"1m"}`, 422, "invalid"},
		{"POST", "/v1/thresholds", `{"id":"c","task":"mail","count":1,"within":"1"}`, 422, "invalid"},
		{"POST", "/v1/thresholds/none/hits", "", 404, "no-threshold"},
		{"GET", "/v1/thresholds/none", "", 404, "no-threshold"},
		{"POST", "/v1/tasks/a%20b/pause", "", 422, "invalid"},
		{"POST", "/v1/dead/requeue", `{}`, 422, "invalid"},
		{"POST", "/v1/dead/delete", `{"all":true,"task":"mail"}`, 422, "invalid"},
		{"GET", "/v1/nothing", "", 404, "no-route"},
		{"PUT", "/v1/jobs", "{}", 405, "method"},
		{"DELETE", "//v1/jobs/there", "", 404, "no-route"},
		{"DELETE", "/v1/./jobs/there", "", 404, "no-route"},
	} {
		t.Run(c.method+" "+c.path+" "+c.body[:min(len(c.body), 40)], func(t *testing.T) {
			w := *w
			w.T = t
			equal(&w, "problem", w.call(c.method, c.path, c.body).problem(c.status), c.kind)
		})
	}
	if _, ok := w.pending("there"); !ok {
		t.Error("a request that was refused has changed something")
	}
	equal(w, "allowed", w.call("PUT", "/v1/jobs", "{}").header.Get("Allow"), "GET, HEAD, POST")
}

// What somebody wrote into Redis stops nothing that has nothing to do with it, and its id
// is not logged.
func TestADefinitionThatCantBeReadHidesNoOther(t *testing.T) {
	w := newWorld(t)
	for _, want := range []string{`{"thresholds":[]}`, `"id":"signups"`} {
		w.rdb.HSet(t.Context(), "keyfuse:thresholds", "login:alice", "junk")
		if a := w.call("GET", "/v1/thresholds", "").want(http.StatusOK); !strings.Contains(a.body, want) {
			t.Errorf("there is no %s in %s", want, a.body)
		}
		w.call("GET", "/v1/stats", "").want(http.StatusOK)
		w.page("/thresholds")
		if _, err := w.c.DefineThreshold(t.Context(), client.Threshold{ID: "signups", Task: "mail", Count: 5, Within: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if log := w.log.String(); strings.Contains(log, "alice") || !strings.Contains(log, "keyfuse doctor") {
		t.Errorf("logged %s", log)
	}
}

func TestABulkAnswersEachLine(t *testing.T) {
	w := newWorld(t)
	var lines strings.Builder
	for i := range 500 {
		fmt.Fprintf(&lines, `{"id":"job %d","task":"mail","in":"1h"}`+"\n", i)
		if i == 10 {
			lines.WriteString("\n{\"id\":\"bad\"}\nnonsense\n" + `{"id":"job 3","task":"mail","in":"1h"}` + "\n")
		}
	}
	a := w.call("POST", "/v1/jobs", lines.String(), "Content-Type", "application/x-ndjson").want(http.StatusOK)
	got := strings.Split(strings.TrimSpace(a.body), "\n")
	equal(w, "lines", len(got), 503)
	wrong := map[int]string{11: `invalid.*"line":13`, 12: `malformed.*"line":14`, 13: `exists.*"line":15`}
	for i, line := range got {
		kind, number, _ := strings.Cut(wrong[i], ".*")
		if strings.Contains(line, "urn:keyfuse:problem:") != (kind != "") || !strings.Contains(line, "problem:"+kind) && kind != "" || !strings.Contains(line, number) {
			t.Errorf("answer %d is %s, want %q", i, line, wrong[i])
		}
	}
	if _, ok := w.pending("job 499"); !ok {
		t.Error("the last one is not scheduled")
	}
}

func TestAListComesInPages(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		w.schedule(client.Spec{ID: fmt.Sprint("order:", i), Task: "mail", In: time.Hour}, client.Spec{ID: fmt.Sprint("other:", i), Task: "bill", In: time.Hour})
	}
	var ids []string
	path := "/v1/jobs?task=mail&prefix=order:&limit=3"
	for cursor := ""; ; {
		var page struct {
			Jobs []view.Job
			Next string `json:"next_cursor"`
		}
		w.call("GET", path+"&cursor="+url.QueryEscape(cursor), "").want(http.StatusOK).json(&page)
		for _, job := range page.Jobs {
			ids = append(ids, job.ID)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	equal(w, "ids", strings.Join(ids, " "), "order:0 order:1 order:2 order:3 order:4 order:5 order:6")
}

func TestATraceGoesWithTheJob(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	const body = `{"task":"mail","in":"1h"}`
	traced := func(w *world, body, header string) string {
		var job view.Job
		w.call("POST", "/v1/jobs", body, "Traceparent", header).want(http.StatusCreated).json(&job)
		return job.Traceparent
	}
	w := newWorld(t)
	equal(w, "by default", traced(w, body, trace), "")
	equal(w, "the field", traced(w, `{"task":"mail","in":"1h","traceparent":"`+trace+`"}`, ""), trace)
	equal(w, "no trace", w.call("POST", "/v1/jobs", `{"task":"mail","in":"1h","traceparent":"x"}`).problem(http.StatusUnprocessableEntity), "invalid")
	w = newWorld(t, func(cfg *web.Config) { cfg.Trace = true })
	equal(w, "the header", traced(w, body, trace), trace)
	equal(w, "a header that can't be read", traced(w, body, "01-x"), "")
	equal(w, "a payload that leaves no room", traced(w, `{"task":"mail","in":"1h","payload":"`+strings.Repeat("x", 4096)+`"}`, trace), "")
}

func TestAThresholdIsDefinedHitAndRemoved(t *testing.T) {
	w := newWorld(t)
	var def view.Definition
	w.call("POST", "/v1/thresholds", `{"id":"signups","task":"mail","count":3,"within":"10m"}`).want(http.StatusCreated).json(&def)
	equal(w, "definition", fmt.Sprint(def.Defined, def.Within, def.OnTimeout, def.Mode), "new10mfirerepeat")
	w.call("POST", "/v1/thresholds", `{"id":"signups","task":"mail","count":3,"within":"10m"}`).want(http.StatusOK).json(&def)
	equal(w, "again", def.Defined, "same")
	var hit view.Hit
	w.call("POST", "/v1/thresholds/signups/hits", "").want(http.StatusOK).json(&hit)
	equal(w, "count", hit.Count, 1)
	for range 2 {
		w.call("POST", "/v1/thresholds/signups/hits", `{"item":"x"}`, "Idempotency-Key", "one").want(http.StatusOK).json(&hit)
		equal(w, "count", hit.Count, 2)
	}
	w.call("POST", "/v1/thresholds/signups/hits", `{"by":1}`).want(http.StatusOK).json(&hit)
	equal(w, "fired", hit.Fired, true)
	var all struct{ Thresholds []view.Threshold }
	w.call("GET", "/v1/thresholds", "").want(http.StatusOK).json(&all)
	equal(w, "firings", len(all.Thresholds[0].LastFirings), 1)
	w.call("DELETE", "/v1/thresholds/signups", "").want(http.StatusOK)
	equal(w, "gone", w.call("GET", "/v1/thresholds/signups", "").problem(http.StatusNotFound), "no-threshold")
}

func TestTasksNodesAndStats(t *testing.T) {
	w := newWorld(t)
	w.schedule(client.Spec{ID: "a", Task: "team/mail", In: time.Hour})
	var switched struct{ Paused, Changed bool }
	w.call("POST", "/v1/tasks/team%2Fmail/pause", "").want(http.StatusOK).json(&switched)
	equal(w, "paused", switched, struct{ Paused, Changed bool }{true, true})
	var stats view.Stats
	w.call("GET", "/v1/stats", "").want(http.StatusOK).json(&stats)
	equal(w, "task", fmt.Sprint(stats.Tasks), fmt.Sprint([]view.Task{{Task: "team/mail", Pending: 1, Paused: true, Nodes: []string{}}}))
	if stats.Redis.Version == "" || stats.Redis.Keys == 0 {
		t.Errorf("nothing of Redis: %+v", stats.Redis)
	}
	w.call("POST", "/v1/tasks/team%2Fmail/resume", "").want(http.StatusOK).json(&switched)
	equal(w, "resumed", switched, struct{ Paused, Changed bool }{false, true})
	w.call("GET", "/v1/nodes", "").want(http.StatusOK)
	w.call("GET", "/v1/tasks", "").want(http.StatusOK)
}

func TestHealth(t *testing.T) {
	w := newWorld(t, withToken)
	w.token = ""
	w.call("GET", "/livez", "").want(http.StatusOK)
	w.call("GET", "/readyz", "").want(http.StatusServiceUnavailable)
	w.status.Ready()
	w.call("GET", "/readyz", "").want(http.StatusOK)
	w.status.Degraded("no route to 10.0.0.1")
	if a := w.call("GET", "/readyz", "").want(http.StatusOK); strings.Contains(a.body, "10.0.0.1") || !strings.Contains(a.body, "degraded") {
		t.Errorf("degraded: %s", a.body)
	}
	w.status.Stop()
	w.call("GET", "/readyz", "").want(http.StatusServiceUnavailable)
}

func TestWithATokenNothingElseIsAnsweredWithoutIt(t *testing.T) {
	w := newWorld(t, withToken)
	w.call("GET", "/v1/jobs", "").want(http.StatusOK)
	for _, wrong := range []string{"", "Bearer", "Bearer " + token[1:], "Bearer " + token + "0", "Basic " + token} {
		for _, path := range []string{"/v1/jobs", "/v1/stats", "/metrics", "/v1/openapi.yaml"} {
			if got := w.call("GET", path, "", "Authorization", wrong).problem(http.StatusUnauthorized); got != "unauthorized" {
				t.Errorf("%s with %q: %s", path, wrong, got)
			}
		}
	}
	if a := w.call("GET", "/jobs?task=a", "", "Authorization", "").want(http.StatusSeeOther); a.header.Get("Location") != "/login?to=%2Fjobs%3Ftask%3Da" {
		t.Errorf("sent to %s", a.header.Get("Location"))
	}
	if strings.Contains(w.log.String(), token) {
		t.Error("the token is in the log")
	}
}

func TestAFormWithoutASessionLeadsToAPage(t *testing.T) {
	w := newWorld(t, withToken)
	a := w.call("POST", "/jobs/x/cancel", "", "Authorization", "").want(http.StatusSeeOther)
	equal(w, "sent to", a.header.Get("Location"), "/login?to=%2F")
}

func TestABrowserLogsIn(t *testing.T) {
	w := newWorld(t, withToken)
	w.token = ""
	const form = "application/x-www-form-urlencoded"
	w.call("POST", "/login", "token=wrong&to=/jobs", "Content-Type", form).want(http.StatusUnauthorized)
	for to, want := range map[string]string{"/jobs?task=a": "/jobs?task=a", "//evil.example": "/", "https://evil.example/": "/", "/\\evil.example": "/", "": "/"} {
		a := w.call("POST", "/login", "token="+token+"&to="+url.QueryEscape(to), "Content-Type", form).want(http.StatusSeeOther)
		equal(w, "sent to", a.header.Get("Location"), want)
		cookie := a.header.Get("Set-Cookie")
		for _, part := range []string{"HttpOnly", "SameSite=Lax"} {
			if !strings.Contains(cookie, part) {
				t.Errorf("the cookie has no %s: %s", part, cookie)
			}
		}
		if strings.Contains(cookie, token) {
			t.Error("the cookie is the token")
		}
		session, _, _ := strings.Cut(cookie, ";")
		w.call("GET", "/jobs", "", "Cookie", session).want(http.StatusOK)
		w.call("GET", "/v1/jobs", "", "Cookie", session).want(http.StatusOK)
		w.call("GET", "/jobs", "", "Cookie", session+"0").want(http.StatusSeeOther)
	}
}

func TestOtherSitesCanDoNothing(t *testing.T) {
	w := newWorld(t)
	w.schedule(client.Spec{ID: "a", Task: "mail", In: time.Hour})
	equal(w, "origin", w.call("DELETE", "/v1/jobs/a", "", "Origin", "https://evil.example").problem(http.StatusForbidden), "cross-origin")
	equal(w, "fetch", w.call("POST", "/jobs/a/cancel", "", "Sec-Fetch-Site", "cross-site").problem(http.StatusForbidden), "cross-origin")
	equal(w, "name", w.call("GET", "/v1/jobs", "", "Host", "evil.example").problem(http.StatusForbidden), "host")
	equal(w, "stream", w.call("GET", "/jobs", "", "Sec-Fetch-Site", "cross-site", "Accept", "text/event-stream").status, http.StatusForbidden)
	if _, ok := w.pending("a"); !ok {
		t.Error("another site's page cancelled a job")
	}
	w.call("GET", "/v1/jobs", "", "Host", "[::1]:8787").want(http.StatusOK)
	w.call("GET", "/v1/jobs", "", "Host", "localhost").want(http.StatusOK)
	for name, value := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"} {
		equal(w, name, w.call("GET", "/", "").header.Get(name), value)
	}
	if csp := w.call("GET", "/", "").header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy: %s", csp)
	}
}

func TestNothingOfARequestIsLogged(t *testing.T) {
	w := newWorld(t)
	w.call("POST", "/v1/jobs", `{"id":"secret-id","task":"mail","in":"1h","payload":"secret-payload"}`).want(http.StatusCreated)
	w.call("GET", "/v1/jobs/secret-id", "").want(http.StatusOK)
	w.call("GET", "/v1/jobs?prefix=secret", "").want(http.StatusOK)
	if log := w.log.String(); strings.Contains(log, "secret") || !strings.Contains(log, "/v1/jobs/{id}") {
		t.Errorf("the log: %s", log)
	}
}

func TestNewRefusesWhatIsMissing(t *testing.T) {
	if _, err := web.New(web.Config{}); err == nil {
		t.Error("a server without anything was made")
	}
}
