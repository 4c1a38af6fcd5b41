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
func (s *server) flags(ctx context.Context) Check {
	if s.exam.opts.NoNotifications {
		return ok("switched off by redis.notifications")
	}
	flags, err := s.setting(ctx, "notify-keyspace-events")
	if err != nil {
		return blind("notify-keyspace-events", err, "see that it has E and x; the check of events below proves it")
	}
	return judgeFlags(flags, s.counting())
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
func (s *server) events(ctx context.Context) Check {
	if s.exam.opts.NoNotifications {
		return ok("switched off by redis.notifications")
	}
	channel := s.stores[0].Expired(s.stores[0].DB())
	sub := s.rdb.Subscribe(ctx, channel)
	defer sub.Close() //nolint:errcheck // nothing more is wanted of it
	if _, err := sub.Receive(ctx); err != nil {
		if denied(err) {
			return fail("ACL SETUSER "+s.user+" +subscribe &"+channel, "may not subscribe to %s", channel)
		}
		return blind("whether events arrive", err, "redis-cli SUBSCRIBE "+channel+", and let a key expire")
	}
	ctx, cancel := context.WithTimeout(ctx, eventWait)
	defer cancel()
	key, err := s.lay(ctx)
	if err != nil {
		return fail("mend that first: see the other checks", "can't set a key with a TTL: %s", firstLine(err.Error()))
	}
	start := time.Now()
	if err := s.hear(ctx, sub, key); err != nil {
		return fail("set notify-keyspace-events (above); if it is set, see that this is the master, and that nothing between drops pub/sub",
			"no event for an expired key within %s", eventWait)
	}
	took := time.Since(start)
	c := ok("an expiry was heard of within %s", took.Round(100*time.Microsecond))
	c.extent = took
	return c
}

// lay lays a key that expires at once, in a partition that is not being moved.
func (s *server) lay(ctx context.Context) (key string, err error) {
	for _, store := range s.stores {
		key = store.Of("doctor:" + rand.Text())
		err = s.rdb.Set(ctx, key, "1", time.Millisecond).Err()
		if !redis.HasErrorPrefix(err, "ASK") && !redis.HasErrorPrefix(err, "MOVED") {
			break
		}
	}
	return key, err
}

// hear waits for the event of a key that it touches meanwhile.
func (s *server) hear(ctx context.Context, sub *redis.PubSub, key string) error {
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
			if err := s.rdb.Exists(ctx, key).Err(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
