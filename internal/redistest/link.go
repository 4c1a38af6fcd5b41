//go:build unix

package redistest

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"time"
)

// link is one connection through a proxy. It is closed as a whole.
type link struct {
	proxy          *Proxy
	client, target net.Conn
	once           sync.Once
	done           chan struct{}

	armed bool // the next reply is to be lost; guarded by the proxy's mutex
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		_ = l.client.Close()
		_ = l.target.Close()
	})
}

// pump forwards what it reads, chunk by chunk, while pass agrees.
func (l *link) pump(to, from net.Conn, pass func(chunk []byte) bool) {
	defer l.close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !(l.hold() && pass(buf[:n]) && l.write(to, buf[:n])) {
			return
		}
		if err != nil {
			return
		}
	}
}

// hold waits while a chunk is to be held back, and reports whether the link is
// there still.
func (l *link) hold() bool {
	if delay, _ := l.proxy.pace(); delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.done:
			return false
		}
	}
	select {
	case <-l.proxy.flow():
		return true
	case <-l.done:
		return false
	}
}

// write reports whether all was written, in pieces if the proxy splits.
func (l *link) write(to net.Conn, chunk []byte) bool {
	_, piece := l.proxy.pace()
	if piece <= 0 {
		piece = len(chunk)
	}
	for part := range slices.Chunk(chunk, piece) {
		if _, err := to.Write(part); err != nil {
			return false
		}
	}
	return true
}

// sawRequest arms the link if the reply to this request is to be lost.
func (l *link) sawRequest(chunk []byte) bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if l.armed {
		return true
	}
	l.armed = l.proxy.takeLoss(func(x loss) bool {
		return x.word != "" && bytes.Contains(chunk, []byte(x.word))
	})
	return true
}

// passReply reports whether the reply may pass; else the link ends with it.
func (l *link) passReply([]byte) bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return !l.armed && !l.proxy.takeLoss(func(x loss) bool { return x.word == "" })
}

// takeLoss removes the first loss that matches, and reports whether one did.
func (p *Proxy) takeLoss(matches func(loss) bool) bool {
	i := slices.IndexFunc(p.swallow, matches)
	if i < 0 {
		return false
	}
	p.swallow = slices.Delete(p.swallow, i, i+1)
	return true
}
