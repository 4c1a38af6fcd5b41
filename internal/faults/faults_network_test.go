package faults

import (
	"math/rand/v2"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// networkFaults are what can happen on the way to a server: of one daemon, of all
// of them, or of the load.
func (s *standalone) networkFaults() []fault {
	return []fault{
		{at: theNetwork, name: "network cut", apply: s.on(func(p *redistest.Proxy) func() {
			p.Cut()
			return func() {}
		})},
		{at: theNetwork, name: "network half-open", apply: s.on(func(p *redistest.Proxy) func() {
			p.Freeze()
			return p.Thaw
		})},
		{at: theNetwork, name: "network half-open beyond a lease", long: true, apply: s.on(func(p *redistest.Proxy) func() {
			p.Freeze()
			return p.Thaw
		})},
		{at: theNetwork, name: "network slow", apply: s.on(func(p *redistest.Proxy) func() {
			p.Delay(150 * time.Millisecond)
			return func() { p.Delay(0) }
		})},
		{at: theNetwork, name: "packets split", apply: s.on(func(p *redistest.Proxy) func() {
			p.Split(7)
			return func() { p.Split(0) }
		})},
		{at: theNetwork, name: "replies lost", apply: s.on(func(p *redistest.Proxy) func() {
			p.SwallowReplies(3)
			p.SwallowRepliesTo("evalsha", 10)
			return func() {}
		})},
	}
}

// on breaks some of the ways to Redis.
func (s *standalone) on(breakWay func(*redistest.Proxy) (mend func())) breaking {
	return func(_ *harness, rng *rand.Rand, _ time.Duration) (func() error, error) {
		ways := append(s.proxies[:len(s.proxies):len(s.proxies)], s.way)
		if n := rng.IntN(len(ways) + 1); n < len(ways) {
			ways = ways[n : n+1]
		}
		var mends []func()
		for _, way := range ways {
			mends = append(mends, breakWay(way))
		}
		return func() error {
			for _, mend := range mends {
				mend()
			}
			return nil
		}, nil
	}
}
