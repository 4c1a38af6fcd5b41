package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// bulk schedules the jobs of a file.
type bulk struct {
	a        *app
	s        *session
	zone     *time.Location
	ifExists client.IfExists
	known    knownTasks
	strict   bool
	bar      progress

	maxLine  int
	at       int             // the line that was read last
	sent     []int           // lines that were given to the client and not answered yet
	tasks    map[string]bool // that jobs were scheduled for
	readErr  error
	new      int
	kept     int
	replaced int
	failed   int

	unconfirmed int // of those that were scheduled
}

func (a *app) scheduleFrom(ctx context.Context, s *session, f scheduleFlags) error {
	zone, err := f.when.zone()
	if err != nil {
		return err
	}
	in, size := a.stdin, int64(-1)
	if f.from != "-" {
		file, err := os.Open(f.from)
		if err != nil {
			return failf(exitFailed, "can't read the jobs: %w", err)
		}
		defer file.Close() //nolint:errcheck // nothing was written
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		in = file
	}
	b := &bulk{
		a: a, s: s, zone: zone, ifExists: client.IfExists(f.ifExists), tasks: map[string]bool{}, strict: f.strict,
		bar: a.progress(size), maxLine: 6*int(s.cfg.Engine.MaxPayload) + 8192, // JSON may take six bytes for one
	}
	var knownErr error
	if b.known, knownErr = s.known(ctx); knownErr != nil && f.strict {
		return knownErr
	}
	err = b.run(ctx, in)
	b.bar.end()
	if knownErr == nil && !f.strict {
		a.warnUnknown(b.known, slices.Sorted(maps.Keys(b.tasks))...)
	}
	if summed := b.summary(); err == nil {
		return summed
	}
	return err
}

func (b *bulk) run(ctx context.Context, in io.Reader) error {
	for _, r := range b.s.ScheduleMany(ctx, b.specs(bufio.NewReaderSize(in, 64<<10))) {
		at := b.sent[0]
		b.sent = b.sent[1:]
		if errors.Is(r.Err, client.ErrUnconfirmed) {
			b.unconfirmed++
			r.Err = nil
		}
		p := explainOrNil(b.s.explain(r.Err))
		if p != nil && (p.code == exitRedis || p.code == exitFailed) {
			p.err = fmt.Errorf("line %d: %w", at, p.err)
			p.next = strings.TrimPrefix(fmt.Sprintf("%s; jobs from line %d on may be scheduled or not: give them again with --if-exists keep", p.next, at), "; ")
			return p
		}
		if err := b.settle(at, r, p); err != nil {
			return err
		}
	}
	return b.readErr
}

func explainOrNil(err error) *problem {
	if err == nil {
		return nil
	}
	return explain(err)
}

func (b *bulk) settle(at int, r client.Result, p *problem) error {
	switch {
	case p != nil:
		b.bad(at, p)
		return nil
	case r.Kept:
		b.kept++
	case r.Replaced:
		b.replaced++
	default:
		b.new++
	}
	b.tasks[r.Task] = true
	if b.s.json {
		return b.a.printJSON(b.s.scheduledJSON(r.Scheduled))
	}
	return nil
}

func (b *bulk) bad(at int, err error) {
	b.failed++
	b.bar.clear()
	b.a.complainf("line %d: %s", at, err)
}

// specs reads the jobs of the lines that are well; the others it reports.
func (b *bulk) specs(in *bufio.Reader) iter.Seq[client.Spec] {
	return func(yield func(client.Spec) bool) {
		for {
			text, size, err := readLine(in, b.maxLine)
			if size > 0 {
				b.at++
				b.bar.add(size)
			}
			if spec, ok := b.spec(text, size); ok {
				b.sent = append(b.sent, b.at)
				if !yield(spec) {
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					b.readErr = failf(exitFailed, "can't read on after line %d: %w", b.at, err)
				}
				return
			}
		}
	}
}

func (b *bulk) spec(text []byte, size int) (client.Spec, bool) {
	if size > b.maxLine {
		b.bad(b.at, fmt.Errorf("it has %d bytes, more than any job within the payload limit", size))
		return client.Spec{}, false
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return client.Spec{}, false
	}
	spec, err := view.ParseSpec(text, b.zone)
	if err == nil && b.strict && !b.known.has(spec.Task) {
		err = b.known.unknown(spec.Task)
	}
	if err != nil {
		b.bad(b.at, err)
		return spec, false
	}
	spec.IfExists = cmp.Or(spec.IfExists, b.ifExists)
	return spec, true
}

func (b *bulk) summary() error {
	text := fmt.Sprintf("scheduled %s", view.Count(b.new+b.replaced, "job"))
	if b.replaced > 0 {
		text += fmt.Sprintf(", %d of them in place of others", b.replaced)
	}
	if b.kept > 0 {
		text += fmt.Sprintf("; %d were there before", b.kept)
	}
	if b.failed > 0 {
		text += fmt.Sprintf("; %s not", view.Count(b.failed, "line"))
	}
	if b.s.json {
		b.a.notef("%s", text)
	} else if err := b.a.printf("%s\n", text); err != nil {
		return err
	}
	if b.unconfirmed > 0 {
		return fmt.Errorf("%w: %d of these jobs, which are scheduled all the same", client.ErrUnconfirmed, b.unconfirmed)
	}
	return reportedIf(b.failed > 0)
}

// readLine reads a line with its end and says how long it was; of one that is
// longer than limit it keeps nothing.
func readLine(in *bufio.Reader, limit int) (text []byte, size int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += len(part)
		if size <= limit {
			text = append(text, part...)
		} else {
			text = nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, size, err
		}
	}
}
