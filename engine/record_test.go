package engine_test

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
)

// record is a log that a test reads.
type record struct {
	lines atomic.Int64
	mu    sync.Mutex
	text  strings.Builder
	seen  []watch
}

type watch struct {
	text string
	ch   chan string
}

func (r *record) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// Write takes a line.
func (r *record) Write(p []byte) (int, error) {
	r.lines.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.seen {
		if strings.Contains(string(p), w.text) {
			select {
			case w.ch <- string(p):
			default:
			}
		}
	}
	return r.text.Write(p)
}

// lineWith is a channel of the lines to come that hold a text.
func (r *record) lineWith(text string) <-chan string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := make(chan string, 100)
	r.seen = append(r.seen, watch{text, ch})
	return ch
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}
