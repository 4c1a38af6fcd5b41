package embedded_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
)

// bubble runs test with a server and a subscriber to all keyspace
// notifications in a bubble of fake time. The server speaks RESP2 there.
func bubble(t *testing.T, test func(t *testing.T, s *embedded.Server, w, events *wire)) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, embedded.Config{})
		events := dial(t, s)
		equal(t, events.do("PSUBSCRIBE", "__key*"), "[$psubscribe $__key* :1]", "PSUBSCRIBE")
		test(t, s, dial(t, s), events)
	})
}

func expiredEvent(db int, key string) string {
	return fmt.Sprintf("[$pmessage $__key* $__keyevent@%d__:expired $%s]", db, key)
}

func TestKeyExpiresInTheMillisecondAfterItsDeadlineAndNotBefore(t *testing.T) {
	bubble(t, func(t *testing.T, _ *embedded.Server, w, events *wire) {
		set := time.Now()
		w.do("SET", "k", "v", "PX", "1500")
		time.Sleep(1500 * time.Millisecond)
		equal(t, w.do("PTTL", "k"), ":0", "PTTL at the deadline")
		equal(t, w.do("GET", "k"), "$v", "GET at the deadline")
		equal(t, events.read(), expiredEvent(0, "k"), "event")
		if took := time.Since(set); took != 1501*time.Millisecond {
			t.Errorf("event after %v, want 1.501s", took)
		}
		equal(t, w.do("GET", "k"), "$-1", "GET after the event")
	})
}

func TestEventsComeInTheOrderOfDeadlinesOverHours(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server, w, events *wire) {
		begin := time.Now()
		for i := range 100 {
			hours := 1 + i*37%100
			w.do("SET", fmt.Sprintf("job:%03d", hours), "v", "EX", fmt.Sprint(hours*3600))
		}
		for hours := 1; hours <= 100; hours++ {
			equal(t, events.read(), expiredEvent(0, fmt.Sprintf("job:%03d", hours)), "event")
			if late := time.Since(begin) - time.Duration(hours)*time.Hour; late != time.Millisecond {
				t.Fatalf("hour %d: %v late, want 1ms", hours, late)
			}
		}
		if n := s.IndexSize(); n != 0 {
			t.Errorf("%d deadlines left", n)
		}
	})
}

func TestOnlyTheLastDeadlineOfAKeyCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server, w, events *wire) {
		for _, command := range []string{
			"SET gone v PX 1000", "DEL gone",
			"SET unlinked v PX 1000", "UNLINK unlinked",
			"SET kept v PX 1000", "PERSIST kept",
			"SET overwritten v PX 1000", "SET overwritten v",
			"SET popped v PX 1000", "GETDEL popped",
			"RPUSH list a", "PEXPIRE list 1000", "LPOP list",
			"SET now v PX 1000", "EXPIRE now 0",
			"SET longer v PX 1000", "PEXPIRE longer 5000",
			"SET shorter v PX 9000", "PEXPIRE shorter 2000",
			"SET old v PX 3000", "RENAME old new",
			"SET kt v PX 4000", "SET kt w KEEPTTL",
		} {
			w.do(strings.Fields(command)...)
		}
		if n := s.IndexSize(); n != 4 {
			t.Errorf("%d deadlines indexed, want 4", n)
		}
		for _, key := range []string{"shorter", "new", "kt", "longer"} {
			equal(t, events.read(), expiredEvent(0, key), "event")
		}
		equal(t, w.do("EXISTS", "kept", "overwritten"), ":2", "EXISTS")
	})
}

func TestKeysOfAllDatabasesExpireUnderTheirOwnChannel(t *testing.T) {
	bubble(t, func(t *testing.T, _ *embedded.Server, w, events *wire) {
		w.do("SELECT", "3")
		w.do("SET", "three", "v", "PX", "10")
		w.do("SET", "moved", "v", "PX", "20")
		w.do("MOVE", "moved", "5")
		w.do("SET", "copied", "v", "PX", "30")
		w.do("COPY", "copied", "copied", "DB", "7")
		for _, want := range []string{expiredEvent(3, "three"), expiredEvent(5, "moved"), expiredEvent(3, "copied"), expiredEvent(7, "copied")} {
			equal(t, events.read(), want, "event")
		}
	})
}

func TestTTLsSetInMultiCountFromExec(t *testing.T) {
	bubble(t, func(t *testing.T, _ *embedded.Server, w, events *wire) {
		w.do("MULTI")
		w.do("SET", "k", "v", "PX", "1000")
		time.Sleep(time.Minute)
		equal(t, w.do("EXEC"), "[+OK]", "EXEC")
		equal(t, w.do("PTTL", "k"), ":1000", "PTTL")
		equal(t, events.read(), expiredEvent(0, "k"), "event")
	})
}

func TestTTLsSetByScriptsRun(t *testing.T) {
	bubble(t, func(t *testing.T, _ *embedded.Server, w, events *wire) {
		w.do("EVAL", `redis.call('SET', KEYS[1], 'v', 'PX', 50) redis.pcall('SET', KEYS[2], 'v') return redis.pcall('PEXPIRE', KEYS[2], 40)`, "2", "a", "b")
		equal(t, events.read(), expiredEvent(0, "b"), "event")
		equal(t, events.read(), expiredEvent(0, "a"), "event")
	})
}

func TestScriptSeesTheClockStandStill(t *testing.T) {
	s := start(t, embedded.Config{})
	w := dial(t, s)
	w.do("SET", "k", "v", "PX", "1")
	// It spins for 20 ms of the wall clock, in which the key's time is over.
	reply := w.do("EVAL", `
		local function ms() local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000) end
		redis.call('PEXPIRE', 'k', 5)
		local start = ms()
		while ms() < start + 20 do end
		return redis.call('EXISTS', 'k')`, "0")
	equal(t, reply, ":1", "EXISTS in the script")
	equal(t, w.do("EXISTS", "k"), ":0", "EXISTS after it")
}

func TestEventsFollowTheFlags(t *testing.T) {
	const spaceIncrby, eventIncrby = "[$pmessage $__key* $__keyspace@0__:k $incrby]", "[$pmessage $__key* $__keyevent@0__:incrby $k]"
	const spaceExpired, eventExpired = "[$pmessage $__key* $__keyspace@0__:k $expired]", "[$pmessage $__key* $__keyevent@0__:expired $k]"
	bubble(t, func(t *testing.T, _ *embedded.Server, w, events *wire) {
		for _, row := range []struct {
			flags string
			want  []string
		}{
			{"Ex", []string{eventExpired}},
			{"Ex$", []string{eventIncrby, eventExpired}},
			{"Ex", []string{eventExpired}},
			{"E$", []string{eventIncrby}},
			{"K$", []string{spaceIncrby}},
			{"Kx", []string{spaceExpired}},
			{"KE$", []string{spaceIncrby, eventIncrby}},
			{"KEx", []string{spaceExpired, eventExpired}},
			{"EA", []string{eventIncrby, eventExpired}},
			{"KA", []string{spaceIncrby, spaceExpired}},
			{"AKE", []string{spaceIncrby, eventIncrby, spaceExpired, eventExpired}},
			{"", nil},
			{"E", nil},
			{"K", nil},
			{"x$", nil},
			{"A", nil},
			{"Eglshzetdnm", nil},
		} {
			what := "event with flags " + row.flags
			equal(t, w.do("CONFIG", "SET", "notify-keyspace-events", row.flags), "+OK", "CONFIG SET")
			w.do("SET", "k", "1", "PX", "10")
			equal(t, w.do("INCR", "k"), ":2", "INCR")
			time.Sleep(time.Second)
			equal(t, w.do("EXISTS", "k"), ":0", "EXISTS")
			w.do("PUBLISH", "__key:end", "")
			for _, event := range append(row.want, "[$pmessage $__key* $__key:end $]") {
				equal(t, events.read(), event, what)
			}
		}
	})
}

func TestNotificationsAreOnByDefault(t *testing.T) {
	w := dial(t, start(t, embedded.Config{}))
	equal(t, w.do("CONFIG", "GET", "notify-keyspace-events"), "[$notify-keyspace-events $xE]", "CONFIG GET")
	equal(t, w.do("CONFIG", "GET", "notify*", "hz"), "[$hz $500 $notify-keyspace-events $xE]", "CONFIG GET of several")
	all := w.do("CONFIG", "GET", "*")
	for _, name := range []string{"maxmemory", "maxmemory-policy", "appendonly", "save", "hz", "notify-keyspace-events"} {
		if !strings.Contains(all, "$"+name+" ") {
			t.Errorf("CONFIG GET * lacks %s: %s", name, all)
		}
	}
}

func TestAWatchedKeyThatExpiresBreaksTheTransaction(t *testing.T) {
	bubble(t, func(t *testing.T, _ *embedded.Server, w, _ *wire) {
		w.do("SET", "k", "v", "PX", "10")
		w.do("WATCH", "k")
		time.Sleep(time.Second)
		w.do("MULTI")
		w.do("SET", "k", "w")
		equal(t, w.do("EXEC"), "*-1", "EXEC")
	})
}

func TestFlushEmitsNoEvents(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server, w, events *wire) {
		w.do("SET", "a", "v", "PX", "10")
		w.do("SELECT", "1")
		w.do("SET", "b", "v", "PX", "10")
		w.do("FLUSHDB")
		if n := s.IndexSize(); n != 1 {
			t.Errorf("%d deadlines after FLUSHDB, want 1", n)
		}
		w.do("FLUSHALL")
		w.do("SET", "c", "v", "PX", "20")
		equal(t, events.read(), expiredEvent(1, "c"), "event")
	})
}

func TestBlockingPopOfAKeyWithATTLLeavesNoGhost(t *testing.T) {
	bubble(t, func(t *testing.T, _ *embedded.Server, w, events *wire) {
		w.do("RPUSH", "list", "a")
		w.do("PEXPIRE", "list", "100")
		equal(t, w.do("BLPOP", "list", "0"), "[$list $a]", "BLPOP")
		w.do("RPUSH", "list", "b")
		w.do("SET", "end", "v", "PX", "200")
		equal(t, events.read(), expiredEvent(0, "end"), "event")
		equal(t, w.do("LLEN", "list"), ":1", "LLEN")
	})
}

func TestGoRedisHearsEventsInABubble(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("resp%d", protocol), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, embedded.Config{})
				rdb := redis.NewClient(options(s, protocol))
				defer func() { _ = rdb.Close() }()
				sub := rdb.Subscribe(t.Context(), "__keyevent@0__:expired")
				defer func() { _ = sub.Close() }()
				if _, err := sub.Receive(t.Context()); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				if err := rdb.Set(t.Context(), "order:42", "v", 30*time.Minute).Err(); err != nil {
					t.Fatal(err)
				}
				msg, err := sub.ReceiveMessage(t.Context())
				if err != nil || msg.Payload != "order:42" {
					t.Fatalf("got %v, %v", msg, err)
				}
				if took := time.Since(begin); took != 30*time.Minute+time.Millisecond {
					t.Errorf("event after %v", took)
				}
			})
		})
	}
}
