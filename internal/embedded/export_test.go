package embedded

import (
	"bufio"
	"bytes"
)

// SetHardLimit sets how many bytes a subscriber may have unread, for tests.
func (s *Server) SetHardLimit(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hardLimit = bytes
}

// IndexSize is how many deadlines are indexed, for tests.
func (s *Server) IndexSize() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadlines.order.Len()
}

// Mirrored is how many sorted sets are mirrored, for tests.
func (s *Server) Mirrored() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.zsets)
}

// Glob is glob, for tests.
func Glob(pattern, text string) bool { return glob(pattern, text) }

// DropMirrors forgets all sorted sets, so that the next read rebuilds them
// from the engine.
func (s *Server) DropMirrors() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.zsets)
}

// ReadRequests reads requests from data until an error and returns them, for
// tests.
func ReadRequests(data []byte) (requests []string, err error) {
	r := bufio.NewReader(bytes.NewReader(data))
	for {
		var buf bytes.Buffer
		if err := readRequest(r, &buf); err != nil {
			return requests, err
		}
		requests = append(requests, buf.String())
	}
}
