package tasks

import "strings"

// tail is a writer that takes any amount and keeps the last limit bytes, in at
// most twice that memory: it makes room only when it is full, so that many
// small writes stay cheap.
type tail struct {
	limit int
	kept  []byte
}

// Write never fails and takes all of p.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.limit {
		p = p[len(p)-t.limit:]
	}
	if len(t.kept)+len(p) > 2*t.limit {
		t.kept = append(t.kept[:0], t.last()...)
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

// String returns what was kept, made valid UTF-8.
func (t *tail) String() string {
	return strings.ToValidUTF8(string(t.last()), "\uFFFD")
}

func (t *tail) last() []byte { return t.kept[max(0, len(t.kept)-t.limit):] }
