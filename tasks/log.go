package tasks

import (
	"context"
	"log/slog"

	"github.com/keyfuse-io/keyfuse/registry"
)

// logPreview is how many bytes of an id and of a payload a log record shows.
const logPreview = 256

// Log writes one record a run and does nothing else: to try things out with,
// and to see what fires.
type Log struct {
	// Level is the record's level. Zero means info.
	Level slog.Level
	// Logger takes the records. Nil means slog.Default, as it is when the task
	// is made.
	Logger *slog.Logger
}

type logTask struct {
	level  slog.Level
	logger *slog.Logger
}

// NewLog returns a task that logs "fired" with what the envelope tells of the
// run. Of the id and of the payload the record shows 256 bytes; where that is
// not all of it, id_cut_from or payload_cut_from tells the whole length.
// The error is nil: no config is wrong.
func NewLog(c Log) (registry.Handler, error) {
	logger := c.Logger
	if logger == nil {
		logger = slog.Default()
	}
	return &logTask{level: c.Level, logger: logger}, nil
}

// Handle logs the run.
func (t *logTask) Handle(ctx context.Context, job registry.Job) error {
	if !t.logger.Enabled(ctx, t.level) {
		return nil
	}
	short := job
	short.ID = shorten(job.ID, logPreview)
	short.Payload = []byte(shorten(string(job.Payload), logPreview))
	var attrs []slog.Attr
	for _, f := range envelope(short) {
		attrs = append(attrs, slog.Any(f.name, f.value))
	}
	if len(short.ID) < len(job.ID) {
		attrs = append(attrs, slog.Int("id_cut_from", len(job.ID)))
	}
	if len(short.Payload) < len(job.Payload) {
		attrs = append(attrs, slog.Int("payload_cut_from", len(job.Payload)))
	}
	t.logger.LogAttrs(ctx, t.level, "fired", attrs...)
	return nil
}
