package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The setting of Redis that says which keyspace events it publishes, and the
// letters that are needed: events of keys (E), of expired ones (x), and of
// strings ($) while there are thresholds.
const (
	flagsSetting = "notify-keyspace-events"
	countFlag    = "$"
)

// ensureFlags sees to it that Redis tells of expired keys, and of counters while
// there are thresholds. The flags are in force for the whole server and are lost
// when it restarts, so this is asked after every subscription. It says whether
// flags were missing and are set now. It is an error if expired keys are not told
// of; counters are found by the check as well.
func (p *partition) ensureFlags(ctx context.Context) (added bool, err error) {
	server, err := p.store.Server(ctx)
	if err != nil {
		return false, err
	}
	found, err := server.ConfigGet(ctx, flagsSetting).Result()
	if err != nil {
		return false, fmt.Errorf("notification flags can't be read, so events may be missing: %w; put `%s Ex` into redis.conf or allow CONFIG", err, flagsSetting)
	}
	flags := found[flagsSetting]
	counting := p.isCounting()
	missing := missingFlags(flags, counting)
	if missing == "" {
		if !counting {
			return false, p.dropCountFlag(ctx, server, flags)
		}
		return false, nil
	}
	err = server.ConfigSet(ctx, flagsSetting, flags+missing).Err()
	switch {
	case err != nil && missing == countFlag:
		p.note("hearing of counters", fmt.Errorf("%w; put `%s Ex$` into redis.conf; counters are found when they are checked", err, flagsSetting))
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s is %q and can't be set: %w; put `%s Ex` into redis.conf", flagsSetting, flags, err, flagsSetting)
	}
	p.log.Info("turned on keyspace notifications that were missing; put them into redis.conf to keep them", "were", flags, "added", missing)
	if strings.Contains(missing, countFlag) {
		err = p.store.NoteFlag(ctx, countFlag)
	}
	return true, err
}

// isCounting says whether any partition listens to counters: the flags are in force
// for all that a server holds.
func (e *Engine) isCounting() bool {
	return slices.ContainsFunc(e.parts, func(p *partition) bool { return p.counters.listening() })
}

// missingFlags are the letters to add to those that are set. A stands for all
// kinds of events; letters that are unknown here are kept.
func missingFlags(set string, counting bool) string {
	missing := ""
	if !strings.Contains(set, "E") {
		missing += "E"
	}
	if !strings.ContainsAny(set, "xA") {
		missing += "x"
	}
	if counting && !strings.ContainsAny(set, countFlag+"A") {
		missing += countFlag
	}
	return missing
}

// dropCountFlag takes back what was added for thresholds, when there are none
// any more: each write of a string would go on costing Redis an event.
func (p *partition) dropCountFlag(ctx context.Context, server redis.UniversalClient, flags string) error {
	if !strings.Contains(flags, countFlag) {
		return nil
	}
	ours, err := p.store.TakeFlagNote(ctx, countFlag)
	if err != nil || !ours {
		return err
	}
	return server.ConfigSet(ctx, flagsSetting, strings.ReplaceAll(flags, countFlag, "")).Err()
}
