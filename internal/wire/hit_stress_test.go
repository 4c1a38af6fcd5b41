package wire_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

func onProxy(t *testing.T) (*world, *redistest.Proxy) {
	t.Helper()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	w := newWorld(t, proxy.Client(t), server.Client(t))
	w.span, w.real = 80*time.Millisecond, true
	return w, proxy
}

// TestLostReplyCountsOnce hits through a connection that retries by itself, and
// so counts a plain INCR twice.
func TestLostReplyCountsOnce(t *testing.T) {
	w, proxy := onProxy(t)
	w.define(wire.Threshold{ID: "signups", Count: 2, Within: lease})
	w.define(wire.Threshold{ID: "other", Count: 2, Within: lease})
	w.hit("other") // from now on Redis has the script
	proxy.SwallowRepliesTo("plain", 1)
	equal(w, "INCR", must(w.s.Redis().Incr(t.Context(), "plain").Result())(w), 2)
	for range 2 {
		proxy.SwallowRepliesTo("signups", 1)
		first := w.hit("signups")
		equal(w, "first", first, wire.HitResult{Count: 1, Threshold: 2, Ends: w.windowOf("signups").End})
		equal(w, "not fired", w.fired("n", "mail"), "")
		proxy.SwallowRepliesTo("signups", 1)
		equal(w, "second", w.hit("signups"), wire.HitResult{Count: 2, Threshold: 2, Fired: true, Ends: first.Ends})
		equal(w, "fired", w.fired("n", "mail"), "signups threshold 2")
		w.isClosed("signups")
	}
}

// daemons claim all that is due of mail, until they are told to end.
type daemons struct {
	w    *world
	end  chan struct{}
	stop func()
	wg   sync.WaitGroup
	mu   sync.Mutex
	ran  []wire.Run
}

func startDaemons(w *world, nodes ...string) *daemons {
	d := &daemons{w: w, end: make(chan struct{})}
	d.stop = sync.OnceFunc(func() { close(d.end); d.wg.Wait() })
	w.Cleanup(d.stop)
	for _, node := range nodes {
		w.beat(node)
		d.wg.Go(func() { d.work(node) })
	}
	return d
}

func (d *daemons) work(node string) {
	for seq := int64(1); ; seq++ {
		select {
		case <-d.end:
			return
		default:
		}
		claimed, err := d.w.s.Claim(d.w.Context(), wire.ClaimRequest{
			Node: node, Seq: seq, Runs: 50, Bytes: 1 << 20, MaxPayload: 1 << 20, Tasks: []wire.Want{{Task: "mail", Runs: 50}},
		})
		if err == nil && len(claimed.Runs) > 0 {
			_, err = d.w.s.Done(d.w.Context(), "mail", claimed.Runs)
		}
		if err != nil {
			d.w.Error(err)
			return
		}
		d.mu.Lock()
		d.ran = append(d.ran, claimed.Runs...)
		d.mu.Unlock()
	}
}

// runs ends the daemons and returns what they ran.
func (d *daemons) runs() []wire.Run {
	d.stop()
	return d.ran
}

// TestEachCrossingFiresOnce lets many clients hit one counter at once.
func TestEachCrossingFiresOnce(t *testing.T) {
	const clients, each, n = 64, 150, 100
	onRedis(t, func(w *world) {
		w.define(wire.Threshold{ID: "c", Count: n, Within: lease})
		d := startDaemons(w, "n1", "n2")
		var wg sync.WaitGroup
		fired := make([]int, clients)
		for i := range clients {
			wg.Go(func() {
				for range each {
					results, err := w.s.Hit(w.Context(), wire.NewToken(), hits("c"))
					if err != nil {
						w.Error(err)
						return
					}
					if results[0].Fired {
						fired[i]++
					}
				}
			})
		}
		wg.Wait()
		runs := slices.Concat(d.runs(), w.take("last", "mail"))
		for _, run := range runs {
			if run.Count != n || run.Reason != "threshold" {
				w.Errorf("a firing by %s with %d hits, want %d", run.Reason, run.Count, n)
			}
		}
		total := 0
		for _, crossed := range fired {
			total += crossed
		}
		equal(w, "firings, answers that say so", []int{len(runs), total}, []int{clients * each / n, clients * each / n})
		w.isClosed("c")
	})
}

// TestNoHitIsLostAtAnEnd counts in windows of a few milliseconds, so that they end
// and cross all the time, by hits and INCR, while others look and claim.
func TestNoHitIsLostAtAnEnd(t *testing.T) {
	onRedis(t, func(w *world) {
		w.define(wire.Threshold{ID: "short", Count: 9, Within: 2 * time.Millisecond})
		w.define(wire.Threshold{ID: "p:*", Count: 40, Within: 5 * time.Millisecond})
		w.define(wire.Threshold{ID: "later", Count: 60, Within: time.Second, Debounce: time.Millisecond, MaxWait: 4 * time.Millisecond})
		counters := []string{"short", "p:1", "p:2", "later"}

		d := startDaemons(w, "n1", "n2")
		end := make(chan struct{})
		var lookers sync.WaitGroup
		lookers.Go(func() { w.lookUntil(end, counters) })
		hit := w.hitFromMany(counters)
		close(end)
		lookers.Wait()
		runs := d.runs()

		fired, by := map[string]int64{}, map[string]int{}
		for {
			for _, run := range runs {
				fired[run.ID] += run.Count
				by[run.Reason]++
			}
			w.touch(counters...) // opens windows for what INCR began last
			if len(must(w.s.Redis().HGetAll(w.Context(), "keyfuse:windows").Result())(w)) == 0 && w.counts("mail").Retrying == 0 {
				break
			}
			runs = w.take("last", "mail")
		}
		equal(w, "hits that fired", fired, hit)
		equal(w, "left", w.dumpOf("short", "p:1", "p:2", "later", "keyfuse:open", "keyfuse:due:mail"), "")
		if by["threshold"] < 10 || by["timeout"] < 10 {
			w.Errorf("firings: %v, want many by each", by)
		}
	})
}

func (w *world) lookUntil(end chan struct{}, counters []string) {
	for {
		select {
		case <-end:
			return
		default:
		}
		if _, err := w.s.Touch(w.Context(), counters); err != nil {
			w.Error(err)
			return
		}
	}
}

// hitFromMany hits some counters from many goroutines, half of them as any client
// would, and returns how often each was hit.
func (w *world) hitFromMany(counters []string) map[string]int64 {
	const clients, each = 12, 150
	total := map[string]int64{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			mine := map[string]int64{}
			for range each {
				all := make([]wire.Hit, 1+random.IntN(5))
				for j := range all {
					all[j] = wire.Hit{ID: counters[random.IntN(len(counters))], By: 1 + random.Int64N(3)}
					mine[all[j].ID] += all[j].By
				}
				if err := w.countAs(i%2 == 0, all); err != nil {
					w.Error(err)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for id, n := range mine {
				total[id] += n
			}
		})
	}
	wg.Wait()
	return total
}

func (w *world) countAs(bare bool, all []wire.Hit) error {
	if !bare {
		_, err := w.s.Hit(w.Context(), wire.NewToken(), all)
		return err
	}
	for _, hit := range all {
		if err := w.rdb.IncrBy(w.Context(), hit.ID, hit.By).Err(); err != nil {
			return err
		}
	}
	return nil
}
