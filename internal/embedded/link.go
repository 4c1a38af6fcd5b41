package embedded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	subscriberLimit = 32 << 20  // Redis's own hard limit for pub/sub clients
	clientLimit     = 512 << 20 // Redis has none; a daemon needs one
	lingerTime      = time.Second
)

// link is a client's connection as the engine sees it. Writes never wait:
// they fill a buffer that pump empties, so that a client that does not read
// stalls nobody but itself. Reads give checked requests only.
type link struct {
	net.Conn
	in       *bufio.Reader
	request  bytes.Buffer // of it the engine has read a part
	overflow func(unread int)

	mu      sync.Mutex
	change  *sync.Cond
	out     []byte
	sending int // bytes that pump is writing
	limit   int
	closing bool
}

var errCut = errors.New("connection is closed")

// newLink wraps conn. Before what the client sends, the engine reads first.
func newLink(conn net.Conn, first []string, overflow func(unread int)) *link {
	l := &link{Conn: conn, in: bufio.NewReader(conn), limit: clientLimit, overflow: overflow}
	l.change = sync.NewCond(&l.mu)
	l.request.Write(appendStrings(nil, '*', first...))
	return l
}

// Read gives the engine the next bytes of a request.
func (l *link) Read(p []byte) (int, error) {
	if l.request.Len() == 0 {
		if l.request.Reset(); l.request.Cap() > smallBulk {
			l.request = bytes.Buffer{}
		}
		if err := readRequest(l.in, &l.request); err != nil {
			l.refuse(err)
			return 0, io.EOF
		}
	}
	return l.request.Read(p)
}

func (l *link) refuse(err error) {
	if bad, ok := errors.AsType[protocolError](err); ok {
		_, _ = fmt.Fprintf(l, "-ERR Protocol error: %s\r\n", bad)
	}
}

// Write queues p. A client with too much unread is cut off, as Redis does.
func (l *link) Write(p []byte) (int, error) {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return 0, errCut
	}
	l.out = append(l.out, p...)
	unread, limit := len(l.out)+l.sending, l.limit
	l.change.Signal()
	l.mu.Unlock()
	if unread > limit {
		l.overflow(unread)
		l.cut()
		return 0, errCut
	}
	return len(p), nil
}

// pump writes what is queued until the link is closed, then closes the
// connection.
func (l *link) pump() {
	defer func() { _ = l.Conn.Close() }()
	for {
		chunk := l.next()
		if len(chunk) == 0 {
			return
		}
		if _, err := l.Conn.Write(chunk); err != nil {
			l.cut()
			return
		}
	}
}

// next waits for something to write. Nothing means the end.
func (l *link) next() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending = 0
	for len(l.out) == 0 && !l.closing {
		l.change.Wait()
	}
	chunk := l.out
	l.out, l.sending = nil, len(chunk)
	return chunk
}

// setLimit says how many bytes may be unread before the client is cut off.
func (l *link) setLimit(limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = limit
}

// Close ends the link after what is queued was written, for which it gives
// the client a second.
func (l *link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return nil
	}
	l.closing = true
	l.change.Signal()
	return l.SetWriteDeadline(time.Now().Add(lingerTime))
}

// cut ends the link at once.
func (l *link) cut() {
	l.mu.Lock()
	l.closing, l.out = true, nil
	l.change.Signal()
	l.mu.Unlock()
	_ = l.Conn.Close()
}
