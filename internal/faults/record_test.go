package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// A daemon writes what happens as lines of a file. Each is one write(2) to a file
// that is only appended to, so that it is there whatever happens to the daemon
// right after it.

// event is one line. Which fields count depends on the kind.
type event struct {
	kind eventKind
	at   int64 // ns, by the machine's clock

	run     string // its id
	attempt int
	word    string // how a handler ended, what became of a run, why events do not come

	reason  string
	count   int64
	due     int64 // ms, by Redis's clock
	id      string
	payload string
}

type eventKind byte

const (
	started   eventKind = 'S' // a handler was called
	ended     eventKind = 'E' // it returned
	settled   eventKind = 'T' // its outcome is in Redis
	leaseLost eventKind = 'L' // the daemon lost its lease
	ready     eventKind = 'R'
	degraded  eventKind = 'D' // events stopped coming, or came again
	stopped   eventKind = 'X' // the engine ended as it should
)

// How a handler can end.
const (
	endOK       = "ok"
	endFailed   = "failed" // on purpose
	endShutdown = "shutdown"
	endLease    = "lease"
	endOther    = "other"
)

// recorder appends events to a daemon's file.
type recorder struct{ file *os.File }

func (r recorder) write(e event) {
	e.at = time.Now().UnixNano()
	if _, err := r.file.Write(e.line()); err != nil {
		panic(err) // what is not on record would be taken for a fault of Keyfuse
	}
}

func (r recorder) started(job registry.Job) {
	r.write(event{
		kind: started, run: job.RunID, attempt: job.Attempt, reason: string(job.Reason), count: job.Count,
		due: job.Due.UnixMilli(), id: job.ID, payload: string(job.Payload),
	})
}

// settled notes what became of a handler that was called: one that was not may be
// claimed anew before it is told of. A handler that was called and given up has no
// time of its own.
func (r recorder) settled(f engine.Firing) {
	if f.Took > 0 || errors.Is(f.Err, engine.ErrShutdown) {
		r.write(event{kind: settled, run: f.Job.RunID, attempt: f.Job.Attempt, word: string(f.Outcome)})
	}
}

func (e event) line() []byte {
	switch e.kind {
	case started:
		return fmt.Appendf(nil, "S %d %s %d %s %d %d %q %q\n", e.at, e.run, e.attempt, e.reason, e.count, e.due, e.id, e.payload)
	case ended, settled:
		return fmt.Appendf(nil, "%c %d %s %d %s\n", e.kind, e.at, e.run, e.attempt, e.word)
	default:
		return fmt.Appendf(nil, "%c %d %q\n", e.kind, e.at, e.word)
	}
}

// parseEvent reads a line, without its end.
func parseEvent(line []byte) (event, error) {
	p := parser{rest: line}
	e := event{kind: eventKind(p.word()[0]), at: p.number()}
	switch e.kind {
	case started:
		e.run, e.attempt, e.reason = string(p.word()), int(p.number()), string(p.word())
		e.count, e.due, e.id, e.payload = p.number(), p.number(), p.quoted(), p.quoted()
	case ended, settled:
		e.run, e.attempt, e.word = string(p.word()), int(p.number()), string(p.word())
	case leaseLost, ready, degraded, stopped:
		e.word = p.quoted()
	default:
		return e, fmt.Errorf("no event: %q", line)
	}
	if p.err != nil || len(p.rest) > 0 {
		return e, fmt.Errorf("no event: %q: %w", line, p.err)
	}
	return e, nil
}

// parser takes a line apart at its spaces.
type parser struct {
	rest []byte
	err  error
}

func (p *parser) word() []byte {
	word, rest, _ := bytes.Cut(p.rest, []byte(" "))
	p.rest = rest
	if len(word) == 0 {
		p.err = fmt.Errorf("a word is missing")
		return []byte("?")
	}
	return word
}

func (p *parser) number() int64 {
	n, err := strconv.ParseInt(string(p.word()), 10, 64)
	if err != nil {
		p.err = err
	}
	return n
}

func (p *parser) quoted() string {
	quoted, err := strconv.QuotedPrefix(string(p.rest))
	if err != nil {
		p.err = err
		return ""
	}
	p.rest = bytes.TrimPrefix(p.rest[len(quoted):], []byte(" "))
	text, err := strconv.Unquote(quoted)
	if err != nil {
		p.err = err
	}
	return text
}
