package doctor

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// server is one server that is looked at: the only one, or a cluster's master.
type server struct {
	exam   *exam
	rdb    redis.UniversalClient
	addr   string        // empty for the only one
	stores []*wire.Store // of the partitions that it holds

	now  time.Time         // by its clock, when the exam began; zero if it does not answer
	info map[string]string // what INFO says; empty if it may not be asked
	user string
}

// reach asks a server who it is, and reads what later checks go by.
func (s *server) reach(ctx context.Context) Check {
	now, err := s.rdb.Time(ctx).Result()
	if err != nil {
		if s.addr != "" {
			return unreachable(err, "start it, or open the way to it from here")
		}
		return unreachable(err, correctIt)
	}
	s.now = now
	if text, err := s.rdb.Info(ctx).Result(); err == nil {
		s.info = fields(text)
	} // else what needs it says that it can't see
	cluster := s.exam.space.IsCluster()
	switch {
	case s.info["role"] == "slave" && cluster:
		return fail("run the doctor again when that is over", "this is a replica since a moment ago: a failover is under way")
	case s.info["role"] == "slave":
		return fail("name the master in redis.url, or its sentinels in redis.addrs and redis.master_name",
			"this is a replica: it takes no writes and tells of no expiry")
	case s.info["cluster_enabled"] == "1" && !cluster:
		return fail("set redis.cluster: true", "this is a node of a cluster, and holds but a part of the data")
	}
	return s.version()
}

// fields reads what INFO and CLUSTER INFO answer.
func fields(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}

const correctIt = "start Redis, or correct --redis-url, redis.url or redis.addrs"

// unreachable knows what to do about some errors; fix is for the others.
func unreachable(err error, fix string) Check {
	switch text := err.Error(); {
	case strings.HasPrefix(text, "NOAUTH"), strings.HasPrefix(text, "WRONGPASS"):
		fix = "correct the user name and password in redis.url: redis://USER:PASSWORD@HOST:PORT"
	case strings.Contains(text, "'cluster|"):
		fix = "ACL SETUSER <user> +cluster|slots +command +time +@connection, and run the doctor again: it says what else is missing"
	case strings.HasPrefix(text, "NOPERM"):
		fix = "ACL SETUSER <user> +time +@connection, and run the doctor again: it says what else is missing"
	case strings.HasPrefix(text, "LOADING"):
		fix = "Redis is reading its data: run the doctor again when it is done"
	case strings.Contains(text, "cluster support disabled"):
		fix = "remove redis.cluster: this Redis is no cluster"
	}
	return fail(fix, "can't be reached: %s", firstLine(err.Error()))
}

func (s *server) version() Check {
	if s.exam.opts.Embedded {
		return ok("the embedded Redis answers; nothing in it is kept after the daemon stops")
	}
	version, told := s.info["redis_version"]
	if !told {
		return blind("Redis's version", nil, "ACL SETUSER <user> +info, or see that it is 7.0 or newer")
	}
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return fail("upgrade Redis to 7.0 or newer", "Redis %q is too old: Keyfuse needs 7.0", version)
	}
	return ok("Redis %s answers", version)
}

// embedded answers the checks of what only a Redis of its own has.
func (s *server) embedded() (Check, bool) {
	return ok("does not apply to the embedded Redis"), s.exam.opts.Embedded
}

// setting reads one setting of Redis; "" with an error if it may not.
func (s *server) setting(ctx context.Context, name string) (string, error) {
	found, err := s.rdb.ConfigGet(ctx, name).Result()
	if err != nil {
		return "", err
	}
	value, ok := found[name]
	if !ok {
		return "", errNoSetting
	}
	return value, nil
}

// errNoSetting is an answer of Redis: it has no such setting.
var errNoSetting = redis.Nil

// denied says whether Redis refused for want of a permission.
func denied(err error) bool {
	answer, ok := errors.AsType[redis.Error](err)
	return ok && strings.Contains(answer.Error(), "NOPERM")
}
