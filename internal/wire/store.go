package wire

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// Store is typed access to what Keyfuse holds in one partition of a Redis
// database: all of it, unless it is a cluster (see Space). Its methods may be
// called at the same time. What they return on failure is the client library's
// error, or ErrMoving.
type Store struct {
	Names
	*scripts
	rdb   redis.UniversalClient
	db    int
	limit time.Duration // of a script's call; zero for none
}

// scripts are those of the folder lua, one for each verb.
type scripts struct {
	arm, claim, done, fail, adopt, sweep, cancel, move, get, unbury, beat, reap, page *redis.Script
	hit, define, undefine                                                             *redis.Script
}

// NewStore makes a store on a connection that is no cluster's. db is the number of
// the database that it uses: Redis's channels are named after it.
func NewStore(rdb redis.UniversalClient, db int) (*Store, error) {
	scripts, err := loadScripts()
	if err != nil {
		return nil, err
	}
	return &Store{rdb: rdb, db: db, scripts: scripts}, nil
}

func loadScripts() (*scripts, error) {
	s := &scripts{}
	for name, script := range map[string]**redis.Script{
		"arm": &s.arm, "claim": &s.claim, "done": &s.done, "fail": &s.fail,
		"adopt": &s.adopt, "sweep": &s.sweep, "cancel": &s.cancel, "move": &s.move, "get": &s.get,
		"exhume": &s.unbury, "beat": &s.beat, "reap": &s.reap,
		"page": &s.page, "hit": &s.hit, "define": &s.define, "undefine": &s.undefine,
	} {
		var err error
		if *script, err = load(name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// load puts a script together with what stands before it.
func load(name string) (*redis.Script, error) {
	files := []string{"prelude", "run", name}
	switch name {
	case "arm", "beat", "page":
		files = []string{"prelude", name}
	case "adopt", "sweep":
		files = []string{"prelude", "adoption", name}
	case "claim", "cancel", "move", "define", "undefine":
		files = []string{"prelude", "run", "window", name}
	case "hit":
		files = []string{"prelude", "run", "window", "counter", name}
	}
	var script []byte
	for _, file := range files {
		text, err := luaFiles.ReadFile("lua/" + file + ".lua")
		if err != nil {
			return nil, err
		}
		script = append(script, text...)
	}
	return redis.NewScript(string(script)), nil
}

// DB is the number of the database.
func (s *Store) DB() int { return s.db }

// DBOf is the database that a client was made for, 0 if it does not say.
func DBOf(rdb redis.UniversalClient) int {
	if c, ok := rdb.(*redis.Client); ok {
		return c.Options().DB
	}
	return 0
}

// ReadTimeoutOf is how long a client waits for an answer, 0 if it does not say.
func ReadTimeoutOf(rdb redis.UniversalClient) time.Duration {
	switch c := rdb.(type) {
	case *redis.Client:
		return c.Options().ReadTimeout
	case *redis.ClusterClient:
		return c.Options().ReadTimeout
	}
	return 0
}

// Redis is the connection, for reads that need no script.
func (s *Store) Redis() redis.UniversalClient { return s.rdb }

// run executes a script. EVALSHA falls back to EVAL, so that a SCRIPT FLUSH or
// a restart of Redis goes unnoticed. While a cluster moves the partition, which for
// a few keys is soon done, it tries again for a while.
func (s *Store) run(ctx context.Context, script *redis.Script, args ...any) ([]any, error) {
	if s.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.limit)
		defer cancel()
	}
	reply, err := script.Run(ctx, s.rdb, []string{s.Root()}, args...).Result()
	for until := time.Now().Add(movingPatience); moving(err) || s.tag != "" && isElsewhere(err); {
		if isElsewhere(err) { // more often than the client follows by itself
			s.refresh(ctx)
		}
		if err = pauseMoving(ctx, until); err != nil {
			return nil, err
		}
		reply, err = script.Run(ctx, s.rdb, []string{s.Root()}, args...).Result()
	}
	if err != nil {
		return nil, s.lookAgain(ctx, err)
	}
	return asList(reply), nil
}

// When is a time for a job: so long from now by Redis's clock, or at a time.
type When struct {
	At time.Time // used unless zero
	In time.Duration
}

func (w When) arg() string {
	if w.At.IsZero() {
		return "+" + strconv.FormatInt(ceilMS(w.In), 10)
	}
	return strconv.FormatInt(w.atMS(), 10)
}

func (w When) atMS() int64 {
	if w.At.Before(time.UnixMilli(0)) {
		return 0
	}
	return ceilMS(time.Duration(w.At.Nanosecond())) + w.At.Unix()*1000
}

// after is the time that is meant at a moment of Redis's clock: not before then.
func (w When) after(now time.Time) time.Time {
	if w.At.IsZero() {
		return msTime(now.UnixMilli() + ceilMS(w.In))
	}
	return msTime(max(now.UnixMilli(), w.atMS()))
}

// ceilMS rounds up: a job must not run before the moment that was asked for.
func ceilMS(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

func msTime(ms int64) time.Time { return time.UnixMilli(ms) }

// The scripts answer integers as such or, where Lua would round them, as text.

func asList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

func asString(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func asInt(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
		f, _ := strconv.ParseFloat(v, 64)
		return int64(f)
	}
	return 0
}

var errShortReply = errors.New("a script's answer is shorter than it must be")

func need(reply []any, n int) error {
	if len(reply) < n {
		return fmt.Errorf("%w: %d values, want %d", errShortReply, len(reply), n)
	}
	return nil
}

// Clock is Redis's time with its microseconds, as a script gives it.
func clock(seconds, micros any) time.Time {
	return time.Unix(asInt(seconds), asInt(micros)*int64(time.Microsecond))
}
