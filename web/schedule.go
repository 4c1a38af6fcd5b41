package web

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"iter"
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
	if trace := r.Header.Get("Traceparent"); s.cfg.Trace && spec.Trace == "" && client.CheckTrace(trace) == nil {
		spec.Trace = trace // one that can't be read is no reason to refuse a job
	}
	if spec.ID == "" {
		if key := r.Header.Get(idempotencyKey); key != "" {
			// If this daemon dies between the job and the note of it, the key
			// finds the same job.
			spec.ID, spec.IfExists = s.idOf(key), client.Keep
		}
	}
	made, err := s.cfg.Client.Schedule(r.Context(), spec)
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

// idOf is the id of a job that has none but an idempotency key.
func (s *Server) idOf(key string) string {
	sum := sha256.Sum256([]byte("job\x00" + key))
	return s.cfg.IDPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// bulkPatience is how long a bulk may stand still, reading or writing.
const bulkPatience = 30 * time.Second

// scheduleMany answers each line with a line: the job, or a problem with the number of
// its line. A line that is wrong stops no other; when Redis fails, the line that it
// befell is the last.
func (s *Server) scheduleMany(w http.ResponseWriter, r *http.Request) error {
	conn := http.NewResponseController(w)
	if err := conn.EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	b := &bulk{s: s, w: w, conn: conn, in: bufio.NewReaderSize(r.Body, 64<<10)}
	w.Header().Set("Content-Type", "application/x-ndjson")
	for _, result := range s.cfg.Client.ScheduleMany(r.Context(), b.specs()) {
		b.answer(result)
	}
	b.tellRefused(-1)
	if b.readErr != nil {
		b.problem(b.line, readError(b.readErr))
	}
	return nil
}

// bulk is one under way.
type bulk struct {
	s    *Server
	w    http.ResponseWriter
	conn *http.ResponseController
	in   *bufio.Reader

	line    int       // that was read last, from 1
	sent    []int     // lines that were given to the client and are not answered yet
	refused []refusal // lines that were not, in their order
	readErr error
}

type refusal struct {
	line int
	why  error
}

// specs reads the lines; what is wrong with one is told in its turn.
func (b *bulk) specs() iter.Seq[client.Spec] {
	return func(yield func(client.Spec) bool) {
		for {
			_ = b.conn.SetReadDeadline(time.Now().Add(bulkPatience)) // where it can't be set, the server's holds
			text, err := b.read()
			if len(bytes.TrimSpace(text)) > 0 {
				spec, wrong := parseSpec(text)
				if wrong != nil {
					b.refused = append(b.refused, refusal{b.line, wrong})
				} else if b.sent = append(b.sent, b.line); !yield(spec) {
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					b.readErr = err
				}
				return
			}
		}
	}
}

// read reads a line. One that no job could need is an error, for what follows it can't
// be told from it.
func (b *bulk) read() ([]byte, error) {
	var text []byte
	b.line++
	for {
		part, err := b.in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case int64(len(text)) > b.s.jobBody():
			return nil, fmt.Errorf("line %d is longer than any job within the payload limit", b.line)
		case !errors.Is(err, bufio.ErrBufferFull):
			return text, err
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

// tellRefused tells of the lines before one, or of all if that is negative.
func (b *bulk) tellRefused(before int) {
	for len(b.refused) > 0 && (before < 0 || b.refused[0].line < before) {
		b.problem(b.refused[0].line, b.refused[0].why)
		b.refused = b.refused[1:]
	}
}

func (b *bulk) problem(line int, err error) {
	p := problemOf(err)
	if p.Type == "redis" {
		b.s.cfg.Log.Warn("a bulk failed", "line", line, "err", err)
	}
	p.Type, p.Line = problemSpace+p.Type, line
	b.write(p)
}

func (b *bulk) write(v any) {
	_ = b.conn.SetWriteDeadline(time.Now().Add(bulkPatience))
	_ = encoder(b.w).Encode(v) // who has gone ends the request's context
}
