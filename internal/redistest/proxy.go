//go:build unix

package redistest

import (
	"net"
	"sync"
	"testing"
	"time"
)

const dialWithin = 5 * time.Second

// Proxy forwards TCP connections to a target, and fails on demand. Its methods
// may be called from any goroutine.
type Proxy struct {
	target string
	ln     net.Listener
	wg     sync.WaitGroup // the accept loop and every link's goroutines

	mu      sync.Mutex
	links   map[*link]struct{}
	closed  bool
	flowing chan struct{} // closed while bytes may flow
	swallow []loss        // replies that are still to be lost, first first
	delay   time.Duration
	piece   int // the most bytes a write; 0 is no limit
}

// loss is one reply to be lost, after a request that holds word.
type loss struct{ word string }

// NewProxy starts a proxy on a loopback port of its own. It ends, with all its
// connections and goroutines, when t does. While the target is down, it accepts
// connections and closes them at once.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: proxy: %v", err)
	}
	p := &Proxy{target: target, ln: ln, links: make(map[*link]struct{}), flowing: make(chan struct{})}
	close(p.flowing)
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is the proxy's host:port, with an IP address as the host.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Cut closes all connections, as a firewall that lost its state or a Redis that
// restarted does. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// SwallowReplies loses each of the next n replies: what the target sends next
// on any connection, pushed messages and the answer to a client's handshake
// included, is dropped and that connection closed. So a command was executed
// and its client can't know.
func (p *Proxy) SwallowReplies(n int) { p.SwallowRepliesTo("", n) }

// SwallowRepliesTo is SwallowReplies for the replies to requests that hold word
// in their bytes, letters' case included; replies to others pass. A request of
// more than 32 KiB is searched piece by piece.
func (p *Proxy) SwallowRepliesTo(word string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range n {
		p.swallow = append(p.swallow, loss{word})
	}
}

// Freeze makes the path half-open: connections are accepted and stay open, and
// nothing is forwarded either way until Thaw.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
		p.flowing = make(chan struct{})
	default: // frozen already
	}
}

// Thaw lets flow again, and first what Freeze held back.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing: // not frozen
	default:
		close(p.flowing)
	}
}

// Delay holds each chunk of bytes for d before it is forwarded, either way, so a
// round trip takes twice as long, and no order changes. Zero delays no more;
// what is held already comes when it would have come.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Split forwards bytes in pieces of at most n, each a packet of its own, either
// way: a reader that is quick enough sees replies come in fragments. Zero splits
// no more.
func (p *Proxy) Split(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.piece = n
}

func (p *Proxy) pace() (delay time.Duration, piece int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay, p.piece
}

func (p *Proxy) flow() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flowing
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.ln.Close()
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return // closed
		}
		target, err := net.DialTimeout("tcp", p.target, dialWithin)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.join(&link{proxy: p, client: client, target: target, done: make(chan struct{})})
	}
}

func (p *Proxy) join(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		l.close()
		return
	}
	p.links[l] = struct{}{}
	p.wg.Go(func() { l.pump(l.target, l.client, l.sawRequest) })
	p.wg.Go(func() {
		defer p.leave(l)
		l.pump(l.client, l.target, l.passReply)
	})
}

func (p *Proxy) leave(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
