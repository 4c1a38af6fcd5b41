package engine_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// TestAPathThatForgetsIdleConnectionsDelaysNothing: as a NAT or a firewall does, which
// then drops what is sent on them without a word.
func TestAPathThatForgetsIdleConnectionsDelaysNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := w.dial(ctx, network, addr)
			return &forgotten{Conn: conn, after: 10 * time.Minute, last: time.Now()}, err
		}
		n := w.startOn(w.clientVia(w.addr, dial), tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
		w.schedule(client.Spec{ID: "own", Task: "mail", In: 15 * time.Minute})
		w.set("class:bare", "mail", 0)
		w.set("bare", "x", 15*time.Minute)
		for range 2 {
			if f := n.fired(); f.Late < 0 || f.Late > time.Second {
				w.Errorf("%s was %s late", f.Job.ID, f.Late)
			}
		}
		n.hears()
		if len(n.degraded) > 0 {
			w.Errorf("degraded: %s", <-n.degraded)
		}
		n.stop()
	})
}

// forgotten is a connection that nothing comes through any more once it was idle for
// too long.
type forgotten struct {
	net.Conn
	after time.Duration

	mu   sync.Mutex
	last time.Time
	gone bool
}

func (f *forgotten) used() (gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = f.gone || time.Since(f.last) > f.after
	f.last = time.Now()
	return f.gone
}

func (f *forgotten) Write(p []byte) (int, error) {
	if f.used() {
		return len(p), nil
	}
	return f.Conn.Write(p)
}

func (f *forgotten) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if err == nil {
		f.used()
	}
	return n, err
}
