package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// idempotencyKey is the header that names a request: what bears the same one is done
// once, and answered the same for a day (draft-ietf-httpapi-idempotency-key-header).
const idempotencyKey = "Idempotency-Key"

const (
	// keepAnswer is how long an answer is kept.
	keepAnswer = 24 * time.Hour
	// keepBegun is how long a request is taken to be under way whose daemon has
	// died. That of one that lives says so anew, several times as often.
	keepBegun  = time.Minute
	renewBegun = keepBegun / 4
	maxKey     = 255
	// maxKept bounds a request with a key, and so its answer.
	maxKept = 1 << 20
)

// kept is what is kept of a request: who it was, and what it was answered.
type kept struct {
	Request  string `json:"request"`          // a hash of it
	Status   int    `json:"status,omitempty"` // 0 while it is under way
	Type     string `json:"type,omitempty"`   // of the body's content
	Location string `json:"location,omitempty"`
	Body     []byte `json:"body,omitempty"`
}

// once does what a handler does, once for each idempotency key. What failed for a
// reason of ours may be tried again.
func (s *Server) once(do handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		name := r.Header.Get(idempotencyKey)
		if name == "" {
			return do(w, r)
		}
		if len(name) > maxKey {
			return invalid("the idempotency key has %d bytes, at most %d are allowed", len(name), maxKey)
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxKept))
		if err != nil {
			return readError(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sum := sha256.Sum256([]byte(s.cfg.IDPrefix + "\x00" + name)) // others may share this Redis
		key := "keyfuse:idempotency:" + hex.EncodeToString(sum[:])
		mine := kept{Request: fingerprint(r, body)}
		before, err := s.begin(r.Context(), key, mine)
		if err != nil {
			return err
		}
		if before != nil {
			return before.replay(w, mine)
		}
		return s.keep(w, r, key, mine, do)
	}
}

// fingerprint tells one request from another that bears the same key by mistake.
func fingerprint(r *http.Request, body []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s\n%s\n%s\n", r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), body)
	return hex.EncodeToString(h.Sum(nil))
}

// begin notes that a request is under way, unless there was one of its key: what is
// kept of that.
func (s *Server) begin(ctx context.Context, key string, mine kept) (*kept, error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	for range 2 { // what was there may end between the two
		fresh, err := s.cfg.Redis.SetNX(ctx, key, text, keepBegun).Result()
		if err != nil || fresh {
			return nil, err
		}
		old, err := s.cfg.Redis.Get(ctx, key).Bytes()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var before kept
		if err := json.Unmarshal(old, &before); err != nil {
			return nil, fmt.Errorf("what is kept of an idempotency key can't be read: %w", err)
		}
		return &before, nil
	}
	return &kept{Request: mine.Request}, nil // as if it were under way
}

// replay answers as the first request of a key was.
func (k kept) replay(w http.ResponseWriter, mine kept) error {
	switch {
	case k.Request != mine.Request:
		return problem{
			Type: "idempotency-key-reused", Status: http.StatusUnprocessableEntity, Title: "another request had this key",
			Detail: "give each request an idempotency key of its own",
		}
	case k.Status == 0:
		return problem{
			Type: "idempotency-key-busy", Status: http.StatusConflict, Title: "the same request is under way",
			Detail: "ask again when it is done", retryAfter: 1,
		}
	}
	h := w.Header()
	h.Set("Content-Type", k.Type)
	h.Set("Idempotency-Replayed", "true")
	if k.Location != "" {
		h.Set("Location", k.Location)
	}
	w.WriteHeader(k.Status)
	_, _ = w.Write(k.Body) // who has gone needs no answer
	return nil
}

// keep does it, and keeps the answer before it is given.
func (s *Server) keep(w http.ResponseWriter, r *http.Request, key string, mine kept, do handler) error {
	// What was done must be noted, also if the caller has gone meanwhile.
	ctx := context.WithoutCancel(r.Context())
	answer := &recorded{header: http.Header{}}
	s.whileUnderWay(ctx, key, func() {
		if err := do(answer, r.WithContext(ctx)); err != nil {
			s.fail(answer, r.WithContext(ctx), err)
		}
	})
	mine.Status, mine.Body = cmp.Or(answer.status, http.StatusOK), answer.body.Bytes()
	mine.Type, mine.Location = answer.header.Get("Content-Type"), answer.header.Get("Location")
	if err := s.note(ctx, key, mine, answer.again); err != nil {
		s.cfg.Log.Warn("an answer could not be kept for its idempotency key", "route", r.Pattern, "err", err)
	}
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(mine.Status)
	_, _ = w.Write(mine.Body)
	return nil
}

// whileUnderWay does it, and keeps the note that it is under way from ending before.
func (s *Server) whileUnderWay(ctx context.Context, key string, do func()) {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	defer renewing.Wait() // or it could cut short how long the answer is kept
	defer cancel()
	renewing.Go(func() {
		ticker := time.NewTicker(renewBegun)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				// Else the next one may; and one that comes late cuts nothing short.
				_ = s.cfg.Redis.ExpireGT(ctx, key, keepBegun).Err()
			}
		}
	})
	do()
}

// note keeps an answer, unless the request may be tried again.
func (s *Server) note(ctx context.Context, key string, mine kept, again bool) error {
	if again || mine.Status >= http.StatusInternalServerError {
		return s.cfg.Redis.Del(ctx, key).Err()
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	return s.cfg.Redis.Set(ctx, key, text, keepAnswer).Err()
}

// recorded is an answer that is kept before it is given.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
	again  bool // a part of it failed for a reason of ours
}

func (w *recorded) Header() http.Header { return w.header }

func (w *recorded) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *recorded) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}
