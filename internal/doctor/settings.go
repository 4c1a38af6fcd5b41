package doctor

import (
	"context"
	"strconv"
	"strings"
	"time"
)

func (s *server) eviction(ctx context.Context) Check {
	if c, skip := s.embedded(); skip {
		return c
	}
	policy, err := s.setting(ctx, "maxmemory-policy")
	if err != nil {
		if policy, err = s.info["maxmemory_policy"], nil; policy == "" {
			return blind("maxmemory-policy", nil, "see that it is noeviction")
		}
	}
	limit := s.info["maxmemory"]
	if limit == "" {
		limit, err = s.setting(ctx, "maxmemory")
	}
	const fix = "CONFIG SET maxmemory-policy noeviction\nset it in redis.conf as well, or it is gone after a restart"
	switch {
	case policy == "noeviction":
		return ok("maxmemory-policy is noeviction")
	case err != nil || limit != "0":
		return fail(fix, "maxmemory-policy is %s: when memory is full, Redis deletes jobs", policy)
	}
	return warn(fix, "maxmemory-policy is %s; maxmemory is not set, but once it is, Redis deletes jobs when memory is full", policy)
}

func (s *server) persistence(ctx context.Context) Check {
	if c, skip := s.embedded(); skip {
		return c
	}
	if s.info["aof_enabled"] == "" {
		return blind("whether Redis persists", nil, "see that appendonly is on, or a restart loses jobs")
	}
	save, err := s.setting(ctx, "save")
	appendOnly := s.info["aof_enabled"] == "1"
	bad := ""
	for _, key := range []string{"aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status"} {
		if status := s.info[key]; status != "" && status != "ok" {
			bad = key + " is " + status
		}
	}
	switch {
	case bad != "":
		return fail("see Redis's log and the space on its disk; then BGREWRITEAOF or BGSAVE", "Redis can't persist: %s", bad)
	case appendOnly:
		return ok("appendonly is on")
	case err != nil:
		return blind("whether Redis saves snapshots; appendonly is off", err, "set appendonly yes, or a restart loses the latest jobs")
	case save == "":
		return warn("CONFIG SET appendonly yes, and in redis.conf", "neither appendonly nor save is on: a restart of Redis loses all jobs")
	}
	return warn("CONFIG SET appendonly yes, and in redis.conf", "only snapshots (save %s): a crash of Redis loses the jobs since the last one", save)
}

// bufferFloor is what a burst of events needs at least, in bytes: some 100,000
// of them while a subscriber catches its breath.
const bufferFloor = 8 << 20

func (s *server) buffer(ctx context.Context) Check {
	if c, skip := s.embedded(); skip {
		return c
	}
	limits, err := s.setting(ctx, "client-output-buffer-limit")
	if err != nil {
		return blind("client-output-buffer-limit", err, "see that its pubsub part allows 8 MB at least")
	}
	fields := strings.Fields(limits)
	for i := 0; i+3 < len(fields); i += 4 {
		if fields[i] != "pubsub" {
			continue
		}
		hard, hardErr := strconv.ParseInt(fields[i+1], 10, 64)
		soft, softErr := strconv.ParseInt(fields[i+2], 10, 64)
		if hardErr != nil || softErr != nil {
			break
		}
		if hard > 0 && hard < bufferFloor || soft > 0 && soft < bufferFloor {
			return warn(`CONFIG SET client-output-buffer-limit "pubsub 256mb 64mb 60", and in redis.conf`,
				"a subscriber is cut off at %d bytes (%d for %s s): a burst of events is lost whole, and its bare jobs wait for the sweep", hard, soft, fields[i+3])
		}
		return ok("a subscriber may lag by %d bytes", hard)
	}
	return blind("the pubsub part of client-output-buffer-limit", nil, "see that it allows 8 MB at least")
}

// clockLimit is how far clocks may be apart before people are confused.
const clockLimit = time.Second

func (s *server) clock(ctx context.Context) Check {
	sent := time.Now()
	now, err := s.rdb.Time(ctx).Result()
	trip := time.Since(sent)
	if err != nil {
		return blind("Redis's clock", err, "ACL SETUSER "+s.user+" +time")
	}
	return judgeClock(now.Sub(sent.Add(trip/2)), trip)
}

// judgeClock judges how far Redis's clock is ahead, known to half a round trip.
func judgeClock(ahead, trip time.Duration) Check {
	word := "ahead of"
	if ahead < 0 {
		word = "behind"
	}
	shown := max(ahead.Abs(), trip/2).Round(time.Millisecond)
	if ahead.Abs() > clockLimit+trip/2 {
		return warn("set both clocks by NTP",
			"Redis's clock is %s %s this machine's: no job is early or late by it, for Redis's clock alone judges, but times that are shown and logged are off", shown, word)
	}
	c := ok("Redis's clock and this machine's are at most %s apart", shown+time.Millisecond)
	c.extent = shown
	return c
}
