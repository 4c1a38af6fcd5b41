package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/servers"
)

// block is for how long Redis did nothing else.
type block struct {
	longest time.Duration // by LATENCY
	ping    time.Duration // p99 of a PING
}

// pingEvery is how often a PING is sent.
const pingEvery = time.Millisecond

// watchBlock watches how long Redis is blocked until the function that it returns is
// called, which tells it: nil if there is no Redis.
func (s stores) watchBlock(ctx context.Context) (func() (*block, error), error) {
	i := slices.IndexFunc(s, func(server *servers.Server) bool { return server.Name == "redis" })
	if i < 0 {
		return func() (*block, error) { return nil, nil }, nil
	}
	redis := s[i]
	if err := redis.Reset(ctx); err != nil {
		return nil, err
	}
	p, err := startPings(ctx, redis.Addr)
	if err != nil {
		return nil, err
	}
	return func() (*block, error) {
		ping, err := p.stop()
		longest, err2 := redis.Longest(ctx)
		return &block{longest, ping}, errors.Join(err, err2)
	}, nil
}

// pings are sent on a connection of their own.
type pings struct {
	conn   net.Conn
	cancel context.CancelFunc
	done   chan struct{}
	took   []time.Duration
	err    error
}

func startPings(ctx context.Context, addr string) (*pings, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("a connection to PING on: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &pings{conn: conn, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = p.send(ctx)
	}()
	return p, nil
}

func (p *pings) send(ctx context.Context) error {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	answers := bufio.NewReader(p.conn)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		began := time.Now()
		if _, err := p.conn.Write([]byte("PING\r\n")); err != nil {
			return err
		}
		if _, err := answers.ReadString('\n'); err != nil {
			return err
		}
		p.took = append(p.took, time.Since(began))
	}
}

// stop ends them; it is the p99 of how long they took.
func (p *pings) stop() (time.Duration, error) {
	p.cancel()
	<-p.done
	slices.Sort(p.took)
	if len(p.took) == 0 {
		return 0, errors.Join(p.err, p.conn.Close())
	}
	return p.took[len(p.took)*99/100], errors.Join(p.err, p.conn.Close())
}
