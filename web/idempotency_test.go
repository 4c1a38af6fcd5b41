package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func TestAKeyIsDoneOnce(t *testing.T) {
	w := newWorld(t)
	const body = `{"task":"mail","in":"1h"}`
	first := w.call("POST", "/v1/jobs", body, "Idempotency-Key", "k1").want(http.StatusCreated)
	again := w.call("POST", "/v1/jobs", body, "Idempotency-Key", "k1").want(http.StatusCreated)
	equal(w, "body", again.body, first.body)
	equal(w, "location", again.header.Get("Location"), first.header.Get("Location"))
	equal(w, "said", again.header.Get("Idempotency-Replayed"), "true")
	equal(w, "reused", w.call("POST", "/v1/jobs", `{"task":"bill","in":"1h"}`, "Idempotency-Key", "k1").problem(http.StatusUnprocessableEntity), "idempotency-key-reused")
	var job view.Job
	first.json(&job)
	if err := w.c.Cancel(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	w.call("POST", "/v1/jobs", body, "Idempotency-Key", "k1").want(http.StatusCreated)
	if _, ok := w.pending(job.ID); ok {
		t.Error("a job that was cancelled was scheduled again by the same request")
	}
	w.call("POST", "/v1/jobs", body, "Idempotency-Key", "k2").want(http.StatusCreated)
	equal(w, "too long", w.call("POST", "/v1/jobs", body, "Idempotency-Key", strings.Repeat("k", 256)).problem(http.StatusUnprocessableEntity), "invalid")
}

func TestAKeyOfARefusalIsKeptToo(t *testing.T) {
	w := newWorld(t)
	w.schedule(client.Spec{ID: "a", Task: "mail", In: 3600e9})
	const body = `{"id":"a","task":"mail","in":"1h"}`
	equal(w, "first", w.call("POST", "/v1/jobs", body, "Idempotency-Key", "k").problem(http.StatusConflict), "exists")
	if err := w.c.Cancel(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	equal(w, "again", w.call("POST", "/v1/jobs", body, "Idempotency-Key", "k").problem(http.StatusConflict), "exists")
}

func TestAKeyAtTheSameTimeIsDoneOnce(t *testing.T) {
	w := newWorld(t)
	w.schedule(client.Spec{ID: "c", Task: "mail", In: 3600e9})
	var calling sync.WaitGroup
	statuses := make([]int, 16)
	for i := range statuses {
		calling.Go(func() {
			statuses[i] = w.call("POST", "/v1/jobs", `{"task":"mail","in":"1h"}`, "Idempotency-Key", "k").status
		})
	}
	calling.Wait()
	for _, status := range statuses {
		if status != http.StatusCreated && status != http.StatusConflict {
			t.Errorf("statuses: %v", statuses)
			break
		}
	}
	stats, err := w.c.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(w, "jobs", fmt.Sprint(stats.Tasks[0].Pending), "2")
}

// If the daemon dies between the job and the note of it, the key still finds the job.
func TestAKeyWithoutANoteFindsItsJob(t *testing.T) {
	w := newWorld(t)
	const body = `{"task":"mail","in":"1h"}`
	first := w.call("POST", "/v1/jobs", body, "Idempotency-Key", "k").want(http.StatusCreated)
	keys, err := w.rdb.Keys(t.Context(), "keyfuse:idempotency:*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys: %v, %v", keys, err)
	}
	w.rdb.Del(t.Context(), keys...)
	var a, b view.Job
	first.json(&a)
	w.call("POST", "/v1/jobs", body, "Idempotency-Key", "k").want(http.StatusOK).json(&b)
	equal(w, "job", b.ID, a.ID)
	equal(w, "kept", b.Kept, true)
}

func TestABulkWithAKey(t *testing.T) {
	w := newWorld(t)
	body := strings.Repeat(`{"task":"mail","in":"1h"}`+"\n", 3)
	first := w.call("POST", "/v1/jobs", body, "Idempotency-Key", "k", "Content-Type", "application/x-ndjson").want(http.StatusOK)
	again := w.call("POST", "/v1/jobs", body, "Idempotency-Key", "k", "Content-Type", "application/x-ndjson").want(http.StatusOK)
	equal(w, "body", again.body, first.body)
	big := strings.Repeat(body, 20_000)
	equal(w, "too large", w.call("POST", "/v1/jobs", big, "Idempotency-Key", "k2", "Content-Type", "application/x-ndjson").problem(http.StatusRequestEntityTooLarge), "too-large")
}
