package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// schedule takes one job as JSON, or many as newline-delimited JSON.
func (s *Server) schedule(w http.ResponseWriter, r *http.Request) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		return s.scheduleOne(w, r)
	case "application/x-ndjson", "application/jsonl":
		return s.scheduleMany(w, r)
	}
	return problem{
		Type: "content-type", Status: http.StatusUnsupportedMediaType, Title: "not this type of content",
		Detail: "send one job as application/json, or many as application/x-ndjson, one a line",
	}
}

func (s *Server) scheduleOne(w http.ResponseWriter, r *http.Request) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.jobBody()))
	if err != nil {
		return readError(err)
	}
	spec, err := parseSpec(text)
	if err != nil {
		return err
	}
	made, err := s.cfg.Client.Schedule(r.Context(), s.complete(spec, r, 1))
	if err != nil {
		return err
	}
	w.Header().Set("Location", pathOf(made.ID))
	status := http.StatusCreated
	if made.Kept {
		status = http.StatusOK
	}
	return writeJSON(w, status, view.ScheduledOf(made, s.cfg.Replicas))
}

// complete adds what the request's headers say of the job on a line of it.
func (s *Server) complete(spec client.Spec, r *http.Request, line int) client.Spec {
	if trace := r.Header.Get("Traceparent"); s.cfg.Trace && spec.Trace == "" && client.CheckTrace(trace) == nil &&
		int64(len(spec.Payload)+client.TraceSize) <= s.cfg.MaxPayload {
		spec.Trace = trace // one that can't be read, or does not fit, is no reason to refuse a job
	}
	if key := r.Header.Get(idempotencyKey); key != "" && spec.ID == "" {
		// If this daemon dies between the job and the note of it, the key finds the
		// same job.
		spec.ID, spec.IfExists = s.idOf(key, line), client.Keep
	}
	return spec
}

func parseSpec(text []byte) (client.Spec, error) {
	spec, err := view.ParseSpec(text, time.UTC)
	if err == nil {
		return spec, nil
	}
	if strings.HasPrefix(err.Error(), "not a job") || strings.HasPrefix(err.Error(), "something follows") {
		return spec, malformed(err)
	}
	return spec, invalid("%w", err)
}

// idOf is the id of a job that has none but an idempotency key, and its line.
func (s *Server) idOf(key string, line int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "job\x00%d\x00%s", line, key))
	return s.cfg.IDPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// The limits of a bulk. It is read whole before its first line is scheduled: one that
// stalls or breaks off has done nothing, and no client makes this daemon keep more.
const (
	maxBulk       = 32 << 20 // bytes
	maxLines      = 100_000
	maxBulks      = 4 // at a time
	readBulk      = 2 * time.Minute
	writePatience = 30 * time.Second // how long an answer that comes in parts may stand still
)

// scheduleMany answers each line with a line: the job, or a problem with the number of
// its line. A line that is wrong stops no other; when Redis fails, the line that it
// befell is the last.
func (s *Server) scheduleMany(w http.ResponseWriter, r *http.Request) error {
	select {
	case s.bulks <- struct{}{}:
		defer func() { <-s.bulks }()
	default:
		return problem{Type: "busy", Status: http.StatusServiceUnavailable, Title: "too many bulks at a time", Detail: "send it again", retryAfter: 1}
	}
	b := &bulk{s: s, r: r, w: w, conn: http.NewResponseController(w)}
	// Where they can't be set, the server's hold.
	_ = b.conn.SetReadDeadline(time.Now().Add(readBulk))
	_ = b.conn.SetWriteDeadline(time.Now().Add(readBulk + writePatience))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBulk))
	if err != nil {
		return readError(err)
	}
	if n := bytes.Count(body, []byte("\n")); n > maxLines {
		return problem{
			Type: "too-large", Status: http.StatusRequestEntityTooLarge, Title: "too large",
			Detail: fmt.Sprintf("%d lines, at most %d are allowed: send the rest in another request", n, maxLines),
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	for _, result := range s.cfg.Client.ScheduleMany(r.Context(), b.specs(body)) {
		if b.answer(result); b.failed {
			return nil
		}
	}
	b.tellRefused(math.MaxInt)
	return nil
}

// bulk is one under way.
type bulk struct {
	s    *Server
	r    *http.Request
	w    http.ResponseWriter
	conn *http.ResponseController

	sent    []int     // lines that were given to the client and are not answered yet
	refused []refusal // lines that were not, in their order
	failed  bool      // Redis did, and nothing is known of the lines that follow
}

type refusal struct {
	line int
	why  error
}

// specs are the jobs of the lines; what is wrong with one is told in its turn.
func (b *bulk) specs(body []byte) iter.Seq[client.Spec] {
	return func(yield func(client.Spec) bool) {
		line := 0
		for text := range bytes.Lines(body) {
			line++
			if len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			spec, err := parseSpec(text)
			if err != nil {
				b.refused = append(b.refused, refusal{line, err})
				continue
			}
			b.sent = append(b.sent, line)
			if !yield(b.s.complete(spec, b.r, line)) {
				return
			}
		}
	}
}

func (b *bulk) answer(result client.Result) {
	line := b.sent[0]
	b.sent = b.sent[1:]
	b.tellRefused(line)
	if result.Err != nil {
		b.problem(line, result.Err)
		return
	}
	b.write(view.ScheduledOf(result.Scheduled, b.s.cfg.Replicas))
}

// tellRefused tells of the lines before one.
func (b *bulk) tellRefused(before int) {
	for len(b.refused) > 0 && b.refused[0].line < before {
		b.problem(b.refused[0].line, b.refused[0].why)
		b.refused = b.refused[1:]
	}
}

func (b *bulk) problem(line int, err error) {
	p := problemOf(err)
	if p.isOurs() {
		b.s.cfg.Log.Warn("a bulk failed", "line", line, "err", err)
	}
	if p.Status >= http.StatusInternalServerError {
		b.failed = !errors.Is(err, client.ErrUnconfirmed) // which ends nothing
		if kept, ok := b.w.(*recorded); ok {
			kept.again = true
		}
	}
	p.Type, p.Line = problemSpace+p.Type, line
	b.write(p)
}

func (b *bulk) write(v any) {
	_ = b.conn.SetWriteDeadline(time.Now().Add(writePatience))
	_ = encoder(b.w).Encode(v) // who has gone ends the request's context
}
