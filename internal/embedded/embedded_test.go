package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	for _, addr := range []string{":6379", "0.0.0.0:0", "[::]:0", "192.0.2.1:6379", "example.com:6379", "nonsense", "127.0.0.1"} {
		if _, err := embedded.Start(embedded.Config{Addr: addr}); err == nil || !strings.Contains(err.Error(), "127.0.0.1:<port>") {
			t.Errorf("%q: got %v, want an error with the next step", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		s := start(t, embedded.Config{Addr: addr})
		if !strings.HasPrefix(s.Addr(), "127.0.0.1:") || strings.HasSuffix(s.Addr(), ":0") {
			t.Errorf("%q: listens on %q", addr, s.Addr())
		}
	}
}

func TestTakenPortIsAnError(t *testing.T) {
	s := start(t, embedded.Config{Addr: "127.0.0.1:0"})
	if _, err := embedded.Start(embedded.Config{Addr: s.Addr()}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v", err)
	}
}

func TestCloseEndsConnectionsAndRefusesNewOnes(t *testing.T) {
	s := start(t, embedded.Config{Addr: "127.0.0.1:0"})
	tcp, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	piped, subscribed, blocked := dial(t, s), dial(t, s), dial(t, s)
	over := newWire(t, tcp)
	for _, w := range []*wire{over, piped, subscribed, blocked} {
		equal(t, w.do("PING"), "+PONG", "PING")
	}
	subscribed.do("SUBSCRIBE", "c")
	blocked.send("BLPOP", "nothing", "0")
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	for i, w := range []*wire{over, piped, subscribed, blocked} {
		if _, err := w.in.ReadByte(); err == nil {
			t.Errorf("connection %d lives on", i)
		}
	}
	if _, err := s.Dial(t.Context(), "tcp", "x"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Dial: got %v, want net.ErrClosed", err)
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("the port is still open")
	}
}

func TestDialObeysItsContext(t *testing.T) {
	s := start(t, embedded.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Dial(ctx, "tcp", "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	equal(t, s.Addr(), "", "Addr without a listener")
}

func TestGoRedisAndADoctorFindWhatTheyLookFor(t *testing.T) {
	s := start(t, embedded.Config{})
	rdb := client(t, s)
	ctx := t.Context()
	if err := rdb.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	info, err := rdb.Info(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"redis_version:8.", "role:master", "maxmemory_policy:noeviction", "aof_enabled:0", "loading:0", "db0:keys=1,expires=1", "embedded:1"} {
		if !strings.Contains(info, line) {
			t.Errorf("INFO lacks %s:\n%s", line, info)
		}
	}
	if part := rdb.Info(ctx, "keyfuse").Val(); part != "# Keyfuse\r\nembedded:1\r\n" {
		t.Errorf("INFO keyfuse: %q", part)
	}
	flags, err := rdb.ConfigGet(ctx, "notify-keyspace-events").Result()
	if err != nil || flags["notify-keyspace-events"] != "xE" {
		t.Errorf("CONFIG GET: %v, %v", flags, err)
	}
	if err := rdb.ConfigSet(ctx, "maxmemory", "1gb").Err(); err == nil || !strings.Contains(err.Error(), "real redis") {
		t.Errorf("CONFIG SET maxmemory: %v", err)
	}
	name := "keyfuse"
	if err := rdb.Conn().ClientSetInfo(ctx, redis.LibraryInfo{LibName: &name}).Err(); err != nil {
		t.Errorf("CLIENT SETINFO: %v", err)
	}
	if id := rdb.ClientID(ctx).Val(); id < 1 {
		t.Errorf("CLIENT ID: %d", id)
	}
}

func TestLargePipelineDoesNotDeadlock(t *testing.T) {
	rdb := client(t, start(t, embedded.Config{}))
	value := strings.Repeat("v", 1000)
	replies, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 10_000 {
			p.Set(t.Context(), fmt.Sprint(i), value, 0)
			p.Get(t.Context(), fmt.Sprint(i))
		}
		return nil
	})
	if err != nil || len(replies) != 20_000 {
		t.Errorf("%d replies, %v", len(replies), err)
	}
}

func TestBrokenRequestsEndOneConnectionOnly(t *testing.T) {
	s := start(t, embedded.Config{})
	for _, request := range []string{
		"PING\r\n", "POST / HTTP/1.1\r\nHost: x\r\n\r\n", "*1\r\n$-1\r\n", "*1\r\n$99999999999\r\n", "*1\r\n$536870913\r\n",
		"*1048577\r\n", "*x\r\n", "*1\r\n+PING\r\n", "*1\r\n$4\r\nPINGxx", "*1\n$4\nPING\n", "*" + strings.Repeat("1", 5000) + "\r\n", "\r\n", "*1\r\n\n",
	} {
		w := dial(t, s)
		go func() { _, _ = io.WriteString(w.conn, request) }()
		if reply := w.read(); !strings.HasPrefix(reply, "-ERR Protocol error: ") {
			t.Errorf("%.30q: got %q", request, reply)
		}
		if _, err := w.in.ReadByte(); err == nil {
			t.Errorf("%.30q: the connection lives on", request)
		}
	}
	w := dial(t, s)
	go func() { _, _ = io.WriteString(w.conn, "*0\r\n*-1\r\n*1\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n") }()
	equal(t, w.read(), "-ERR unknown command '', with args beginning with: ", "empty command")
	equal(t, w.read(), "+PONG", "PING")
}

func TestCommandThatPanicsInTheEngineFailsAlone(t *testing.T) {
	s := start(t, embedded.Config{})
	w := dial(t, s)
	equal(t, w.do("EVAL", "return redis.call", "0"), "-ERR internal error of the embedded server", "EVAL")
	equal(t, w.do("SET", "k", "v"), "+OK", "SET")
	equal(t, dial(t, s).do("EVAL", "return redis.call('GET', 'k')", "0"), "$v", "EVAL")
}

func TestScriptsCannotReachAcrossTheirLocks(t *testing.T) {
	w := dial(t, start(t, embedded.Config{}))
	w.do("SET", "k", "v")
	for _, command := range []string{
		"SELECT 1", "MULTI", "EXEC", "WATCH k", "UNWATCH", "DISCARD", "SUBSCRIBE c", "MOVE k 1", "COPY k k DB 1", "SWAPDB 0 1", "EVAL x 0", "SCRIPT FLUSH",
		"BLPOP l 0", "BZPOPMIN z 0", "XREAD BLOCK 0 STREAMS s 0", "CONFIG GET save", "CLIENT ID", "QUIT", "HELLO 3", "KEYFUSE.INTRODUCTION x", "DUMP k",
	} {
		script := append([]string{"EVAL", "return redis.pcall(unpack(ARGV))", "0"}, strings.Fields(command)...)
		if reply := w.do(script...); !strings.HasPrefix(reply, "-") {
			t.Errorf("%s: got %s", command, reply)
		}
	}
	for _, command := range []string{"INFO", "KEYS *", "SCAN 0", "COPY k c REPLACE", "TIME", "DBSIZE", "PING", "FLUSHDB"} {
		script := append([]string{"EVAL", "return redis.call(unpack(ARGV))", "0"}, strings.Fields(command)...)
		if reply := w.do(script...); strings.HasPrefix(reply, "-") {
			t.Errorf("%s: got %s", command, reply)
		}
	}
}

func TestUnsupportedCommandsSaySo(t *testing.T) {
	w := dial(t, start(t, embedded.Config{}))
	for _, command := range []string{"HEXPIRE h 1 FIELDS 1 f", "RESTORE k 0 x", "SWAPDB 0 1", "DUMP k"} {
		if reply := w.do(strings.Fields(command)...); !strings.Contains(reply, "does not support") {
			t.Errorf("%s: got %s", command, reply)
		}
	}
	if reply := w.do("KEYFUSE.INTRODUCTION", "x"); !strings.HasPrefix(reply, "-ERR unknown command") {
		t.Errorf("introduction by a client: %s", reply)
	}
	w.do("MULTI")
	if reply := w.do("BLPOP", "l", "0"); !strings.Contains(reply, "inside MULTI") {
		t.Errorf("BLPOP inside MULTI: %s", reply)
	}
	equal(t, w.do("EXEC"), "-EXECABORT Transaction discarded because of previous errors.", "EXEC")
}

func TestAnyBytesAreFineAsIdsAndPatterns(t *testing.T) {
	w := dial(t, start(t, embedded.Config{}))
	for _, key := range []string{"\x00", "\xff\xfe", "a\r\nb", `\E(`, "[z-a", "*", "日本", strings.Repeat("k", 512)} {
		equal(t, w.do("SET", key, "v", "PX", "90000"), "+OK", "SET")
		for _, pattern := range []string{key, `\E(`, "[z-a]", "\xff*", `\`, "[", "[^"} {
			if reply := w.do("SCAN", "0", "MATCH", pattern); !strings.HasPrefix(reply, "[$0 [") {
				t.Errorf("SCAN MATCH %q: %s", pattern, reply)
			}
			if reply := w.do("PUBSUB", "CHANNELS", pattern); reply != "[]" {
				t.Errorf("PUBSUB CHANNELS %q: %s", pattern, reply)
			}
		}
		equal(t, w.do("TTL", key), ":90", "TTL")
		equal(t, w.do("DEL", key), ":1", "DEL")
	}
}
