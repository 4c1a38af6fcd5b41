package web

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// However long it takes, whoever sends it again is told that it is under way; and what
// says so does not cut short for how long its answer is kept.
func TestARequestIsUnderWayUntilItEnds(t *testing.T) {
	redistest.InBubble(t, func(t *testing.T, b *redistest.Bubble) {
		s := &Server{cfg: Config{Redis: b.Client(t), Log: slog.New(slog.DiscardHandler)}}
		release := make(chan struct{})
		done := 0
		handle := s.once(func(w http.ResponseWriter, _ *http.Request) error {
			<-release
			done++
			return writeJSON(w, http.StatusOK, done)
		})
		call := func() (int, string) {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/dead/delete", nil)
			r.Header.Set(idempotencyKey, "k")
			if err := handle(w, r); err != nil {
				s.fail(w, r, err)
			}
			return w.Code, w.Body.String()
		}
		var calling sync.WaitGroup
		calling.Go(func() {
			if status, body := call(); status != http.StatusOK || body != "1\n" {
				t.Errorf("the first: %d %s", status, body)
			}
		})
		synctest.Wait()
		for range 10 {
			time.Sleep(keepBegun)
			if status, body := call(); status != http.StatusConflict {
				t.Fatalf("while it is under way: %d %s", status, body)
			}
		}
		close(release)
		calling.Wait()
		time.Sleep(keepAnswer - time.Second)
		if status, body := call(); status != http.StatusOK || body != "1\n" {
			t.Errorf("a day later: %d %s", status, body)
		}
		time.Sleep(2 * time.Second)
		if status, body := call(); status != http.StatusOK || body != "2\n" {
			t.Errorf("when nothing is kept any more: %d %s", status, body)
		}
	})
}
