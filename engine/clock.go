package engine

import (
	"sync"
	"time"
)

// clock knows a server's time by its answers, as Cristian's algorithm does: the
// answer was made some time between question and answer, so that the middle is wrong
// by half of the round trip at most. Only waits go by it: a wrong clock delays, or
// asks too often, and starts nothing early.
type clock struct {
	mu     sync.Mutex
	offset time.Duration // server's clock minus this machine's
	wrong  time.Duration // by so much at most, when it was learned
	at     time.Time     // then; zero before the first answer
}

// drift is how far two clocks may part, of the time that has passed.
const drift = 1e-4

// note takes an answer to what was asked at sent. One that took long is worse than
// what is known already, unless that has become impossible.
func (c *clock) note(sent, now, answer time.Time) {
	wrong := now.Sub(sent) / 2
	offset := answer.Sub(sent.Add(wrong))
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.wrong + time.Duration(drift*float64(now.Sub(c.at)))
	if apart := (offset - c.offset).Abs(); c.at.IsZero() || wrong <= known || apart > wrong+known {
		c.offset, c.wrong, c.at = offset, wrong, now
	}
}

// now is the server's time, as far as it is known.
func (c *clock) now() time.Time { return time.Now().Add(c.skew()) }

func (c *clock) skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}
