package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/servers"
)

// block is for how long Redis did nothing else.
type block struct {
	longest time.Duration // by LATENCY
	ping    time.Duration // p99 of a PING
	pings   int           // of how many
}

// redis is the one among them; nil if there is none.
func (s stores) redis() *servers.Server {
	i := slices.IndexFunc(s, func(server *servers.Server) bool { return server.Name == "redis" })
	if i < 0 {
		return nil
	}
	return s[i]
}

// blockWatch watches how long Redis is blocked. A nil one watches nothing.
type blockWatch struct {
	redis *servers.Server
	pings *pings
}

// watchBlock begins to watch; it is nil if there is no Redis. End it.
func (s stores) watchBlock(ctx context.Context) (*blockWatch, error) {
	redis := s.redis()
	if redis == nil {
		return nil, nil
	}
	if err := redis.Reset(ctx); err != nil {
		return nil, err
	}
	p, err := startPings(redis.Addr)
	return &blockWatch{redis, p}, err
}

// between ends the watch, and tells what it saw from one time to another.
func (b *blockWatch) between(ctx context.Context, from, to time.Time) (block, error) {
	if b == nil {
		return block{}, nil
	}
	err := b.pings.end()
	longest, err2 := b.redis.Longest(ctx)
	took := b.pings.between(from, to)
	return block{longest, p99(took), len(took)}, errors.Join(err, err2)
}

func (b *blockWatch) end() {
	if b != nil {
		_ = b.pings.end() // nobody wants to know what they saw
	}
}

// pingEvery is how often a PING is due.
const pingEvery = time.Millisecond

// pingPatience is how long Redis may take to answer those that were sent, at the end.
const pingPatience = 30 * time.Second

// pings are sent on a connection of their own when the clock says so, whether those
// before were answered or not: else all that would have met a block but the first would
// not be seen. Each counts from when it was sent, for it may be the machine that is late
// to send it.
type pings struct {
	conn           net.Conn
	begun          time.Time // when the first was due
	stop           atomic.Bool
	end            func() error // ends them when all were answered; again, it says the same
	running        sync.WaitGroup
	sent, answered []time.Time
	quit           bool  // all were answered
	err            error // of sending
}

func startPings(addr string) (*pings, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("a connection to PING on: %w", err)
	}
	p := &pings{conn: conn, begun: time.Now()}
	p.end = sync.OnceValue(p.finish)
	p.running.Go(func() { p.err = p.send() })
	p.running.Go(p.receive)
	return p, nil
}

// send sends them, and at the end a QUIT, at which Redis closes the connection when it
// has answered all.
func (p *pings) send() error {
	for {
		wait := time.Until(p.begun.Add(time.Duration(len(p.sent)) * pingEvery))
		if wait > 0 && p.stop.Load() {
			break // all that were due until then have been sent
		}
		if wait > 0 {
			// A timer of Go's is late by more than a PING takes.
			pause := syscall.NsecToTimespec(int64(wait))
			_ = syscall.Nanosleep(&pause, nil) // one that is interrupted goes on
			continue
		}
		p.sent = append(p.sent, time.Now())
		if _, err := io.WriteString(p.conn, "PING\r\n"); err != nil {
			return err
		}
	}
	_, err := io.WriteString(p.conn, "QUIT\r\n")
	return err
}

// receive reads the answers, in the order of the PINGs.
func (p *pings) receive() {
	for answers := bufio.NewScanner(p.conn); answers.Scan(); {
		if answers.Text() != "+PONG" {
			p.quit = true
			return
		}
		p.answered = append(p.answered, time.Now())
	}
}

func (p *pings) finish() error {
	p.stop.Store(true)
	_ = p.conn.SetDeadline(time.Now().Add(pingPatience)) // it is open
	p.running.Wait()
	if p.err == nil && !p.quit {
		p.err = fmt.Errorf("the server went away, or did not answer: of %d PINGs it answered %d", len(p.sent), len(p.answered))
	}
	return errors.Join(p.err, p.conn.Close())
}

// between is how long those took that were sent from one time to before another.
func (p *pings) between(from, to time.Time) []time.Duration {
	var took []time.Duration
	for i, answered := range p.answered {
		if sent := p.sent[i]; !sent.Before(from) && sent.Before(to) {
			took = append(took, answered.Sub(sent))
		}
	}
	return took
}

// p99 is the time that all but 1 % of them kept; 0 of none.
func p99(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(took))[len(took)*99/100]
}
