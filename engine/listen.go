package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// listenLoop keeps one subscription: to expired keys, and to wake-ups. After
// each gap whatever was missed is looked for.
func (e *Engine) listenLoop(ctx context.Context) {
	for ctx.Err() == nil {
		_ = retry(ctx, func() error { return e.listenOnce(ctx) })
	}
}

// listenOnce is one subscription. It returns nil if there was one, so that the
// next try comes soon.
func (e *Engine) listenOnce(ctx context.Context) error {
	heard, err := e.listen(ctx)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errSilent): // said already, and Redis may work
	case errors.Is(err, errCounting):
		return nil
	default:
		e.live.set("the subscription broke: " + err.Error())
		e.troubles.note("listening", err)
	}
	if heard {
		pause(ctx, firstWait)
		return nil
	}
	return err
}

var errSilent = errors.New("no events come through this connection any more")

// errCounting breaks a subscription for another one, to other channels.
var errCounting = errors.New("the first threshold has come, or the last one has gone")

// listen subscribes and receives until the connection breaks or is found to be
// silent. It always returns an error, and says whether it was subscribed.
func (e *Engine) listen(ctx context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer e.counters.onChange(func() { cancel(errCounting) })() // before the channels are chosen
	channels := e.channels()
	sub := e.store.Redis().Subscribe(ctx, channels...)
	defer e.live.onSilence(func() { cancel(errSilent) })()
	// Receive waits without a limit and without looking at ctx: closing the
	// connection is what ends it.
	var closing sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer closing.Wait()
	defer func() {
		if stop() {
			_ = sub.Close()
		}
	}()
	confirmed := 0
	for {
		heard = confirmed >= len(channels)
		message, err := sub.Receive(ctx)
		switch {
		case ctx.Err() != nil:
			return heard, context.Cause(ctx)
		case redis.IsPermissionError(err) && slices.Contains(channels, e.store.Counted(e.store.DB())):
			e.log.Warn("counters of other clients can't be heard; they are found when they are checked, seconds or a minute late",
				"err", e.explain(ctx, channels, err))
			e.counters.deafen()
			return heard, errCounting
		case redis.IsPermissionError(err):
			e.ready.subscribed(e) // it knows that it can't
			return heard, e.explain(ctx, channels, err)
		case err != nil:
			return heard, err
		}
		switch m := message.(type) {
		case *redis.Subscription:
			if confirmed++; confirmed == len(channels) {
				closing.Go(func() { e.subscribed(ctx) })
			}
		case *redis.Message:
			e.hear(m)
		}
	}
}

// channels are what the node listens to. Those of counters are only heard while
// there are thresholds.
func (e *Engine) channels() []string {
	db := e.store.DB()
	channels := []string{e.store.Wake(db)}
	if e.cfg.Notifications == Off {
		return channels
	}
	channels = append(channels, e.store.Expired(db))
	if e.counters.listening() {
		channels = append(channels, e.store.Counted(db))
	}
	return channels
}

// explain says with which rule Redis would let this user subscribe.
func (e *Engine) explain(ctx context.Context, channels []string, err error) error {
	user, whoErr := e.store.Redis().Do(ctx, "ACL", "WHOAMI").Text()
	if whoErr != nil {
		user = "<user>"
	}
	return fmt.Errorf(`%w; allow it with: ACL SETUSER %s +subscribe "&%s"`, err, user, strings.Join(channels, `" "&`))
}

// hear takes a message in. It must not wait: Redis cuts off a subscriber that
// lags, and everything in its buffer is lost.
func (e *Engine) hear(m *redis.Message) {
	switch {
	case m.Channel == e.store.Wake(e.store.DB()) && m.Payload == "": // no task: thresholds
		e.counters.reload.give()
		return
	case m.Channel == e.store.Wake(e.store.DB()):
		e.look.give()
		return
	case m.Channel == e.store.Counted(e.store.DB()):
		if strings.HasPrefix(m.Payload, e.cfg.IDPrefix) {
			e.counters.heard(e.store.IDOfFuse(m.Payload))
		}
		return
	}
	name, _ := e.node.current()
	switch {
	case m.Payload == e.store.Canary(name):
		e.live.heard()
	case wire.IsInternal(m.Payload), !strings.HasPrefix(m.Payload, e.cfg.IDPrefix), len(m.Payload) > wire.MaxID, m.Payload == "":
	default:
		e.inbox.add(e.store.IDOfFuse(m.Payload))
	}
}

// subscribed is called, beside the receive loop, after each subscription.
func (e *Engine) subscribed(ctx context.Context) {
	e.troubles.note("listening", nil)
	if e.cfg.Notifications == Off {
		e.live.set("")
	} else if _, err := e.ensureFlags(ctx); err != nil {
		e.live.set(err.Error())
	}
	e.look.give()
	if !e.live.stillSilent() {
		e.swept.ask(e.redisNow())
	}
	e.ready.subscribed(e)
}

// liveness knows whether events arrive, by a canary key of the node's own whose
// expiry must be heard between two heartbeats. A connection can be open and
// silent for good: half-open, on a demoted master, refused its subscription,
// or on a server that lost its flags.
type liveness struct {
	tell func(reason string)

	mu      sync.Mutex
	beats   int // heartbeats since the canary was last heard
	silent  int // times that silence was noticed since then
	why     string
	silence func()
}

// canaryBeats is how many heartbeats may pass without the canary: one lays it,
// the next lets it expire, and until the one after that it must be heard.
const canaryBeats = 3

func (l *liveness) beating() {
	l.mu.Lock()
	l.beats++
	l.mu.Unlock()
}

// heard notes the canary.
func (l *liveness) heard() {
	l.mu.Lock()
	l.beats, l.silent = 0, 0
	l.mu.Unlock()
	l.set("")
}

// stillSilent says that subscribing anew has not helped so far: then another
// sweep for it would find no more than the next one that comes anyway.
func (l *liveness) stillSilent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent > 1
}

// check breaks the subscription if the canary was not heard for too long.
func (l *liveness) check() {
	l.mu.Lock()
	silent := l.beats >= canaryBeats && l.silence != nil
	silence := l.silence
	if silent {
		l.beats = 0
		l.silent++
	}
	l.mu.Unlock()
	if silent {
		l.set(errSilent.Error())
		silence()
	}
}

// onSilence says what to do when events stop coming, until the function that it
// returns is called.
func (l *liveness) onSilence(f func()) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silence, l.beats = f, 0
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.silence = nil
	}
}

// set changes why events do not come; "" if they do.
func (l *liveness) set(why string) {
	l.mu.Lock()
	changed := (l.why == "") != (why == "")
	l.why = why
	l.mu.Unlock()
	if changed {
		l.tell(why)
	}
}

func (l *liveness) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

func (e *Engine) tellDegraded(why string) {
	if why == "" {
		e.log.Info("events come again")
		e.swept.ask(e.redisNow())
	} else {
		e.log.Warn("degraded: no events; jobs in the index run on time, bare ones are found by the sweep", "why", why)
	}
	e.look.give()
	if e.cfg.Observer.Degraded != nil {
		e.cfg.Observer.Degraded(why)
	}
}

// readiness tells once that the engine is ready.
type readiness struct {
	mu                       sync.Mutex
	isSubscribed, hasClaimed bool
	told                     bool
}

func (r *readiness) subscribed(e *Engine) { r.note(e, &r.isSubscribed) }
func (r *readiness) claimed(e *Engine)    { r.note(e, &r.hasClaimed) }

func (r *readiness) note(e *Engine, which *bool) {
	r.mu.Lock()
	*which = true
	tell := r.isSubscribed && r.hasClaimed && !r.told
	r.told = r.told || tell
	r.mu.Unlock()
	if !tell {
		return
	}
	name, _ := e.node.current()
	e.log.Info("ready", "node", name, "tasks", len(e.tasks), "concurrency", e.cfg.Concurrency,
		"clock_offset", time.Duration(e.offset.Load()).Round(time.Millisecond))
	if e.cfg.Observer.Ready != nil {
		e.cfg.Observer.Ready()
	}
}
