package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// listenLoop keeps a subscription on each server that holds partitions.
func (e *Engine) listenLoop(ctx context.Context) {
	if !e.space.IsCluster() {
		newListener(e, e.parts).loop(ctx)
		return
	}
	var listening sync.WaitGroup
	defer listening.Wait()
	listeners := make(map[string]*subscription)
	for {
		servers := e.servers(ctx)
		for addr, sub := range listeners {
			if !slices.Equal(sub.parts, servers[addr]) {
				sub.end()
				delete(listeners, addr)
			}
		}
		for addr, parts := range servers {
			if listeners[addr] == nil {
				listeners[addr] = e.subscribe(ctx, &listening, addr, parts)
			}
		}
		if !e.awaitRemap(ctx) {
			return
		}
	}
}

// subscription is a listener that runs.
type subscription struct {
	parts []*partition
	end   context.CancelFunc
}

func (e *Engine) subscribe(ctx context.Context, listening *sync.WaitGroup, addr string, parts []*partition) *subscription {
	ctx, end := context.WithCancel(ctx)
	e.log.Debug("subscribing", "server", addr, "partitions", len(parts))
	for _, p := range parts {
		p.neighbours.Store(int64(len(parts)))
	}
	listening.Go(func() { newListener(e, parts).loop(ctx) })
	return &subscription{parts, end}
}

// servers is which server holds which partitions, by its address. A partition that
// nobody holds is left out: its canary tells.
func (e *Engine) servers(ctx context.Context) map[string][]*partition {
	servers := make(map[string][]*partition)
	for _, p := range e.parts {
		server, err := p.store.Server(ctx)
		p.note("finding the server of a partition", err)
		if err != nil {
			continue
		}
		if c, ok := server.(*redis.Client); ok {
			servers[c.Options().Addr] = append(servers[c.Options().Addr], p)
		}
	}
	return servers
}

// awaitRemap waits until the servers are to be asked again: now and then, and when a
// subscription broke. It says whether the intake goes on.
func (e *Engine) awaitRemap(ctx context.Context) bool {
	timer := time.NewTimer(e.parts[0].beatEvery())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.remap:
	case <-ctx.Done():
		return false
	}
	e.space.Refresh(ctx)
	// The answer comes while this waits; and a server that is away must not be asked
	// about all the time.
	return pause(ctx, firstWait)
}
