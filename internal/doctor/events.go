package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// flags looks whether Redis is told to publish expiry events.
func (e *exam) flags(ctx context.Context) Check {
	if e.opts.NoNotifications {
		return ok("switched off by redis.notifications")
	}
	flags, err := e.setting(ctx, "notify-keyspace-events")
	if err != nil {
		return blind("notify-keyspace-events", err, "see that it has E and x; the check of events below proves it")
	}
	return judgeFlags(flags, len(e.thresholds) > 0)
}

// judgeFlags wants E (channels by event) and x (expiry), and for thresholds $
// (strings, as counters are); A stands for all kinds.
func judgeFlags(flags string, counting bool) Check {
	lack := ""
	if !strings.Contains(flags, "E") {
		lack += "E"
	}
	if !strings.ContainsAny(flags, "xA") {
		lack += "x"
	}
	if counting && !strings.ContainsAny(flags, "$A") {
		lack += "$"
	}
	judge, late := fail, "jobs that other clients set wait for the sweep"
	switch lack {
	case "":
		return ok("notify-keyspace-events is %q", flags)
	case "$":
		judge, late = warn, "what other clients INCR is seen some seconds later, and where a pattern matches up to a minute later"
	}
	return judge("CONFIG SET notify-keyspace-events "+flags+lack+"\nset it in redis.conf as well, or it is gone after a restart",
		"notify-keyspace-events is %q and lacks %s: %s", flags, lack, late)
}

// eventWait is how long an event may take that Redis sends at once.
const eventWait = 2 * time.Second

// events proves that an expiry is told: a key of its own expires, is touched
// (which makes Redis delete it there and then), and must be heard of.
func (e *exam) events(ctx context.Context) Check {
	if e.opts.NoNotifications {
		return ok("switched off by redis.notifications")
	}
	channel := e.names.Expired(e.db)
	sub := e.rdb.Subscribe(ctx, channel)
	defer sub.Close() //nolint:errcheck // nothing more is wanted of it
	if _, err := sub.Receive(ctx); err != nil {
		if denied(err) {
			return fail("ACL SETUSER "+e.user+" +subscribe &"+channel, "may not subscribe to %s", channel)
		}
		return blind("whether events arrive", err, "redis-cli SUBSCRIBE "+channel+", and let a key expire")
	}
	ctx, cancel := context.WithTimeout(ctx, eventWait)
	defer cancel()
	key := e.names.Of("doctor:" + rand.Text())
	if err := e.rdb.Set(ctx, key, "1", time.Millisecond).Err(); err != nil {
		return fail("mend that first: see the other checks", "can't set a key with a TTL: %s", firstLine(err.Error()))
	}
	start := time.Now()
	if err := e.hear(ctx, sub, key); err != nil {
		return fail("set notify-keyspace-events (above); if it is set, see that this is the master, and that nothing between drops pub/sub",
			"no event for an expired key within %s", eventWait)
	}
	return ok("an expiry was heard of after %s", time.Since(start).Round(100*time.Microsecond))
}

// hear waits for the event of a key that it touches meanwhile.
func (e *exam) hear(ctx context.Context, sub *redis.PubSub, key string) error {
	messages := sub.Channel()
	touch := time.NewTicker(5 * time.Millisecond)
	defer touch.Stop()
	for {
		select {
		case m := <-messages:
			if m != nil && m.Payload == key {
				return nil
			}
			if m == nil {
				return errors.New("the subscription ended")
			}
		case <-touch.C:
			if err := e.rdb.Exists(ctx, key).Err(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
