//go:build unix

package redistest

import (
	"bytes"
	"net"
	"slices"
	"sync"
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
		if n > 0 {
			select {
			case <-l.proxy.flow():
			case <-l.done:
				return
			}
			if !pass(buf[:n]) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
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
