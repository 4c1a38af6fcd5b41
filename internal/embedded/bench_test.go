//go:build unix

package embedded_test

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
)

const due = "keyfuse:due:task"

// Scripts that do what the engine's do, as to the number and kind of
// commands.
var (
	scheduleScript = redis.NewScript(`
		redis.call('SET', KEYS[1], KEYS[1], 'PXAT', ARGV[1])
		redis.call('SET', KEYS[2], ARGV[2])
		redis.call('ZADD', KEYS[3], ARGV[1], KEYS[1])
		return redis.call('ZRANGE', KEYS[3], 0, 0)`)
	claimScript = redis.NewScript(`
		local due = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, 10)
		redis.call('EXISTS', unpack(due))
		local classes = {}
		for i, id in ipairs(due) do classes[i] = 'class:' .. id end
		local values = redis.call('MGET', unpack(classes))
		redis.call('ZREMRANGEBYRANK', KEYS[1], 0, #due - 1)
		redis.call('DEL', unpack(classes))
		for i, id in ipairs(due) do
			redis.call('HSET', 'run:' .. id, 'v', values[i] or '')
			redis.call('ZADD', KEYS[2], ARGV[1], id)
		end
		redis.call('ZMSCORE', KEYS[2], unpack(due))
		for _, id in ipairs(due) do redis.call('HDEL', 'run:' .. id, 'v') end
		return due`)
)

// sizes are numbers of pending jobs. What a benchmark measures should differ
// by less than a factor of two between them.
var sizes = []int{1_000, 100_000}

func pendingServer(b *testing.B, n int) (*embedded.Server, *redis.Client) {
	b.Helper()
	s := start(b, embedded.Config{})
	rdb := client(b, s)
	at := time.Now().Add(time.Hour).UnixMilli()
	for first := 0; first < n; first += 1000 {
		_, err := rdb.Pipelined(b.Context(), func(p redis.Pipeliner) error {
			for i := first; i < first+1000; i++ {
				id := fmt.Sprintf("pending:%08d", i)
				p.Do(b.Context(), "SET", id, id, "PXAT", at+int64(i))
				p.Set(b.Context(), "class:"+id, "task payload", 0)
				p.ZAdd(b.Context(), due, redis.Z{Score: float64(at + int64(i)), Member: id})
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC() // or the first measurements pay for it
	return s, rdb
}

func eachSize(b *testing.B, run func(b *testing.B, s *embedded.Server, rdb *redis.Client)) {
	for _, n := range sizes {
		b.Run("pending="+strconv.Itoa(n), func(b *testing.B) {
			s, rdb := pendingServer(b, n)
			before := cpuTime()
			run(b, s, rdb)
			b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// cpuTime is what this process used so far. It tells sizes apart on a machine
// that has other work.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func BenchmarkSchedule(b *testing.B) {
	eachSize(b, func(b *testing.B, _ *embedded.Server, rdb *redis.Client) {
		at := time.Now().Add(30 * time.Minute).UnixMilli()
		for i := 0; b.Loop(); i++ {
			id := fmt.Sprintf("new:%d", i)
			if err := scheduleScript.Run(b.Context(), rdb, []string{id, "class:" + id, due}, at+int64(i), "task payload").Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkClaim claims ten jobs a call, and puts as many back.
func BenchmarkClaim(b *testing.B) {
	eachSize(b, func(b *testing.B, _ *embedded.Server, rdb *redis.Client) {
		for b.Loop() {
			ids, err := claimScript.Run(b.Context(), rdb, []string{due, "keyfuse:running:task"}, "+inf").StringSlice()
			if err != nil || len(ids) != 10 {
				b.Fatal(ids, err)
			}
			b.StopTimer()
			refill(b, rdb, ids)
			b.StartTimer()
		}
	})
}

func refill(b *testing.B, rdb *redis.Client, ids []string) {
	b.Helper()
	_, err := rdb.Pipelined(b.Context(), func(p redis.Pipeliner) error {
		for _, id := range ids {
			p.Set(b.Context(), "class:"+id, "task payload", 0)
			p.ZAdd(b.Context(), due, redis.Z{Score: 1, Member: id})
			p.ZRem(b.Context(), "keyfuse:running:task", id)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLateness says how late events of expired keys come.
func BenchmarkLateness(b *testing.B) {
	eachSize(b, func(b *testing.B, _ *embedded.Server, rdb *redis.Client) {
		sub := rdb.Subscribe(b.Context(), "__keyevent@0__:expired")
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(b.Context()); err != nil {
			b.Fatal(err)
		}
		var late []time.Duration
		for b.Loop() {
			at := time.Now().UnixMilli() + 5
			if err := rdb.Do(b.Context(), "SET", "soon", "v", "PXAT", at).Err(); err != nil {
				b.Fatal(err)
			}
			if _, err := sub.ReceiveMessage(b.Context()); err != nil {
				b.Fatal(err)
			}
			late = append(late, time.Since(time.UnixMilli(at)))
		}
		slices.Sort(late)
		b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-late-µs")
		b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-late-µs")
		b.ReportMetric(float64(late[0].Microseconds()), "min-late-µs")
	})
}

// BenchmarkExpireAtOnce says how long it takes until the events of 100,000
// keys with one deadline are there.
func BenchmarkExpireAtOnce(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		b.StopTimer()
		s := start(b, embedded.Config{})
		rdb, w := client(b, s), dial(b, s)
		w.do("SUBSCRIBE", "__keyevent@0__:expired")
		at := time.Now().Add(5 * time.Second).UnixMilli()
		for first := 0; first < n; first += 1000 {
			_, err := rdb.Pipelined(b.Context(), func(p redis.Pipeliner) error {
				for i := range 1000 {
					p.Do(b.Context(), "SET", fmt.Sprint(first+i), "v", "PXAT", at)
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		for range n {
			w.read()
		}
		b.ReportMetric(float64(time.Since(time.UnixMilli(at)).Milliseconds()), "last-late-ms")
	}
}

// BenchmarkScan is a whole SCAN of 200,000 keys.
func BenchmarkScan(b *testing.B) {
	_, rdb := pendingServer(b, 100_000)
	for b.Loop() {
		n := 0
		for it := rdb.Scan(b.Context(), 0, "class:*", 1000).Iterator(); it.Next(b.Context()); n++ {
		}
		if n != 100_000 {
			b.Fatal(n)
		}
	}
}

func BenchmarkZset(b *testing.B) {
	for name, command := range map[string][]any{
		"ZADD":            {"ZADD", due, "XX", "CH", "1", "pending:00000500"},
		"ZSCORE":          {"ZSCORE", due, "pending:00000500"},
		"ZRANK":           {"ZRANK", due, "pending:00000500"},
		"ZCOUNT":          {"ZCOUNT", due, "-inf", "inf"},
		"ZRANGE":          {"ZRANGE", due, "0", "9", "WITHSCORES"},
		"ZRANGEBYSCORE":   {"ZRANGEBYSCORE", due, "-inf", "inf", "LIMIT", "500", "10"},
		"ZREMRANGEBYRANK": {"ZREMRANGEBYRANK", due, "5", "4"},
		"ZSCAN":           {"ZSCAN", due, "0", "COUNT", "100"},
		"PING":            {"PING"},
	} {
		b.Run(name, func(b *testing.B) {
			eachSize(b, func(b *testing.B, _ *embedded.Server, rdb *redis.Client) {
				rdb.Do(b.Context(), command...) // ZSCAN prepares its order once
				for b.Loop() {
					if err := rdb.Do(b.Context(), command...).Err(); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func BenchmarkPipelinedSet(b *testing.B) {
	rdb := client(b, start(b, embedded.Config{}))
	for b.Loop() {
		_, err := rdb.Pipelined(b.Context(), func(p redis.Pipeliner) error {
			for i := range 1000 {
				p.Set(b.Context(), strconv.Itoa(i), "v", time.Hour)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
