package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// listener keeps one subscription, to expired keys and to wake-ups, on the server
// that holds some partitions. After each gap whatever was missed is looked for.
type listener struct {
	*Engine
	parts []*partition

	expired, counted string   // channels
	wakes            []string // of the parts
}

func newListener(e *Engine, parts []*partition) *listener {
	l := &listener{Engine: e, parts: parts}
	db := l.first().store.DB()
	l.expired, l.counted = l.first().store.Expired(db), l.first().store.Counted(db)
	for _, p := range parts {
		l.wakes = append(l.wakes, p.store.Wake(db))
	}
	return l
}

// first is a partition that stands for all: they are on the same server.
func (l *listener) first() *partition { return l.parts[0] }

func (l *listener) loop(ctx context.Context) {
	for ctx.Err() == nil {
		_ = retry(ctx, func() error { return l.once(ctx) })
	}
}

// once is one subscription. It returns nil if there was one, so that the next try
// comes soon.
func (l *listener) once(ctx context.Context) error {
	heard, err := l.listen(ctx)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errSilent): // said already, and Redis may work
	case errors.Is(err, errCounting):
		return nil
	default:
		for _, p := range l.parts {
			p.live.set("the subscription broke: " + err.Error())
		}
		l.first().note("listening", err)
	}
	l.remap.give()
	if heard && ctx.Err() == nil && l.cfg.Observer.Gap != nil {
		l.cfg.Observer.Gap()
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
func (l *listener) listen(ctx context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, p := range l.parts {
		defer p.counters.onChange(func() { cancel(errCounting) })() // before the channels are chosen
		defer p.live.onSilence(func() { cancel(errSilent) })()
	}
	server, err := l.first().store.Server(ctx)
	if err != nil {
		return false, err
	}
	channels := l.channels()
	sub := server.Subscribe(ctx, channels...)
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
		case redis.IsPermissionError(err):
			return heard, l.forbidden(ctx, channels, err)
		case err != nil:
			return heard, err
		}
		switch m := message.(type) {
		case *redis.Subscription:
			if confirmed++; confirmed == len(channels) {
				closing.Go(func() { l.subscribed(ctx) })
			}
		case *redis.Message:
			l.hear(m)
		}
	}
}

// forbidden is what comes of a channel that this user may not hear: without that of
// counters it goes on.
func (l *listener) forbidden(ctx context.Context, channels []string, err error) error {
	err = l.explain(ctx, channels, err)
	if !slices.Contains(channels, l.counted) {
		for _, p := range l.parts {
			p.ready.isSubscribed(p) // it knows that it can't
		}
		return err
	}
	l.log.Warn("counters of other clients can't be heard; they are found when they are checked, seconds or a minute late", "err", err)
	for _, p := range l.parts {
		p.counters.deafen()
	}
	return errCounting
}

// channels are what the node listens to. Those of counters are only heard while
// there are thresholds.
func (l *listener) channels() []string {
	channels := slices.Clone(l.wakes)
	if l.cfg.Notifications == Off {
		return channels
	}
	channels = append(channels, l.expired)
	if slices.ContainsFunc(l.parts, func(p *partition) bool { return p.counters.listening() }) {
		channels = append(channels, l.counted)
	}
	return channels
}

// explain says with which rule Redis would let this user subscribe.
func (l *listener) explain(ctx context.Context, channels []string, err error) error {
	user := "<user>"
	if server, serverErr := l.first().store.Server(ctx); serverErr == nil {
		if name, whoErr := server.Do(ctx, "ACL", "WHOAMI").Text(); whoErr == nil {
			user = name
		}
	}
	return fmt.Errorf(`%w; allow it with: ACL SETUSER %s +subscribe "&%s"`, err, user, strings.Join(channels, `" "&`))
}

// hear takes a message in. It must not wait: Redis cuts off a subscriber that
// lags, and everything in its buffer is lost.
func (l *listener) hear(m *redis.Message) {
	if l.cfg.Observer.Heard != nil {
		l.cfg.Observer.Heard()
	}
	switch m.Channel {
	case l.expired:
		l.heardExpired(m.Payload)
	case l.counted:
		if p, id := l.partOf(m.Payload); p != nil {
			p.counters.heard(id)
		}
	default:
		switch i := slices.Index(l.wakes, m.Channel); {
		case i < 0:
		case m.Payload == "": // no task: thresholds
			l.parts[i].counters.reload.give()
		default:
			l.parts[i].look.give()
		}
	}
}

func (l *listener) heardExpired(key string) {
	for _, p := range l.parts {
		p.live.stir()
	}
	if wire.IsInternal(key) {
		for _, p := range l.parts {
			if name, _ := p.node.current(); key == p.store.Canary(name) {
				p.live.heard()
			}
		}
		return
	}
	if p, id := l.partOf(key); p != nil {
		p.inbox.add(id)
	}
}

// partOf is the partition and the id whose fuse or counter a key would be, nil if it
// can be none.
func (l *listener) partOf(key string) (*partition, string) {
	for _, p := range l.parts {
		if id, ok := p.store.IDOfFuse(key); ok {
			if !strings.HasPrefix(id, l.cfg.IDPrefix) {
				return nil, ""
			}
			return p, id
		}
	}
	return nil, ""
}

// subscribed is called, beside the receive loop, after each subscription.
func (l *listener) subscribed(ctx context.Context) {
	l.first().note("listening", nil)
	why := ""
	if l.cfg.Notifications != Off {
		if _, err := l.first().ensureFlags(ctx); err != nil {
			why = err.Error()
		}
	}
	for _, p := range l.parts {
		if why != "" || l.cfg.Notifications == Off {
			p.live.set(why)
		}
		p.look.give()
		if !p.live.stillSilent() {
			p.swept.ask(p.redisNow())
		}
		p.ready.isSubscribed(p)
	}
}
