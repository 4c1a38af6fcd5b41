package engine_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// TestSilenceIsDetectedWithinTenSeconds: with the defaults, by a node that has heard
// its canary a moment ago. A demoted master is in TestSentinel…
func TestSilenceIsDetectedWithinTenSeconds(t *testing.T) {
	for name, c := range map[string]struct {
		silence, mend func(w *world, ice *ice)
	}{
		"a frozen server, or a half-open path": {
			func(_ *world, ice *ice) { ice.freeze(nil) },
			func(_ *world, ice *ice) { ice.thaw() },
		},
		"a silent subscription": {
			func(_ *world, ice *ice) { ice.freeze([]byte("subscribe")) },
			func(_ *world, ice *ice) { ice.thaw() },
		},
		"lost flags": {
			func(w *world, _ *ice) { w.rdb.ConfigSet(w.Context(), flags, "") },
			func(*world, *ice) {}, // by the node itself
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				ice := &ice{flow: make(chan struct{})}
				close(ice.flow)
				dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := w.dial(ctx, network, addr)
					if err != nil {
						return nil, err
					}
					return ice.over(conn), nil
				}
				n := w.startOn(w.clientVia(w.addr, dial), tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
				w.awaitCanary()
				start := time.Now()
				c.silence(w, ice)
				if why := await(w, n.degraded, "the silence to be noticed"); why == "" || time.Since(start) > 10*time.Second {
					w.Errorf("noticed after %s, as %q", time.Since(start), why)
				}
				c.mend(w, ice)
				if why := await(w, n.degraded, "events to come again"); why != "" {
					w.Errorf("degraded once more: %s", why)
				}
				n.hears()
				n.stop()
			})
		})
	}
}

// awaitCanary waits until a node's canary was heard.
func (w *world) awaitCanary() {
	w.Helper()
	sub := w.rdb.Subscribe(w.Context(), "__keyevent@0__:expired")
	defer func() { _ = sub.Close() }()
	for range 3 {
		m, err := sub.ReceiveMessage(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		if bytes.HasPrefix([]byte(m.Payload), []byte("keyfuse:canary:")) {
			return
		}
	}
	w.Fatal("no canary")
}

// ice is a path whose connections can freeze: they stay open, and nothing comes.
type ice struct {
	mu   sync.Mutex
	word []byte
	flow chan struct{} // closed while bytes may flow
}

// freeze stops connections whose client has sent the word, or all of them.
func (i *ice) freeze(word []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.word, i.flow = word, make(chan struct{})
}

func (i *ice) thaw() {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.flow)
}

func (i *ice) state() ([]byte, <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.word, i.flow
}

// over is the client's end of a connection that freezes.
func (i *ice) over(server net.Conn) net.Conn {
	client, near := net.Pipe()
	done := make(chan struct{})
	var said bytes.Buffer
	var mu sync.Mutex
	pump := func(from, to net.Conn, hear func([]byte)) {
		defer from.Close() //nolint:errcheck // the other side sees the end
		defer to.Close()   //nolint:errcheck
		buf := make([]byte, 1<<16)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			hear(buf[:n])
			word, flow := i.state()
			mu.Lock()
			frozen := bytes.Contains(said.Bytes(), word)
			mu.Unlock()
			if frozen {
				select {
				case <-flow:
				case <-done:
					return
				}
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		defer close(done)
		pump(near, server, func(b []byte) {
			mu.Lock()
			defer mu.Unlock()
			said.Write(b)
		})
	}()
	go pump(server, near, func([]byte) {})
	return client
}
