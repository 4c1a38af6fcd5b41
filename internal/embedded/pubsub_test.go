package embedded_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
)

// logBuffer is a writer that may be read while it is written to.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestStalledSubscriberIsCutOffAndStallsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logBuffer{}
		s := start(t, embedded.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
		s.SetHardLimit(64 << 10)
		stalled, healthy, w := dial(t, s), dial(t, s), dial(t, s)
		stalled.do("SUBSCRIBE", "__keyevent@0__:expired", "c")
		healthy.do("SUBSCRIBE", "__keyevent@0__:expired")
		const n = 2000
		for i := range n {
			w.do("SET", fmt.Sprintf("%080d", i), "v", "PX", fmt.Sprint(i+1))
			w.do("PUBLISH", "c", "m")
		}
		for i := range n {
			want := fmt.Sprintf("[$message $__keyevent@0__:expired $%080d]", i)
			equal(t, healthy.read(), want, "event")
		}
		equal(t, w.do("PUBLISH", "c", "m"), ":0", "subscribers left")
		if _, err := io.Copy(io.Discard, stalled.conn); err != nil {
			t.Errorf("the stalled connection ended with %v, want EOF", err)
		}
		if lines := strings.Count(log.String(), "cut off"); lines != 1 {
			t.Errorf("%d log lines, want 1:\n%s", lines, log)
		}
	})
}

func TestClientThatDoesNotReadItsRepliesStallsNobody(t *testing.T) {
	s := start(t, embedded.Config{})
	lazy, w := dial(t, s), dial(t, s)
	lazy.do("SET", "big", strings.Repeat("x", 1<<20))
	for range 5 {
		lazy.send("GET", "big")
	}
	equal(t, w.do("PING"), "+PONG", "PING of another client")
	for range 5 {
		if got := lazy.read(); len(got) != 1<<20+1 {
			t.Errorf("got %d bytes", len(got))
		}
	}
}

func TestSubscriberMayRunOtherCommandsInRESP3Only(t *testing.T) {
	s := start(t, embedded.Config{})
	w := dial(t, s)
	w.do("SUBSCRIBE", "c")
	equal(t, w.do("GET", "k"), "-ERR Can't execute 'get': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT are allowed in this context", "GET in RESP2")
	w.do("UNSUBSCRIBE")
	equal(t, w.do("GET", "k"), "$-1", "GET after UNSUBSCRIBE")
	w.do("HELLO", "3")
	equal(t, w.do("SUBSCRIBE", "c"), ">[$subscribe $c :1]", "SUBSCRIBE")
	equal(t, w.do("GET", "k"), "_", "GET in RESP3")
	w.send("PUBLISH", "c", "m")
	equal(t, w.read(), ">[$message $c $m]", "own message")
	equal(t, w.read(), ":1", "PUBLISH")
}

func TestScriptsPublishToSubscribers(t *testing.T) {
	s := start(t, embedded.Config{})
	w, events := dial(t, s), dial(t, s)
	events.do("SUBSCRIBE", "c")
	events.do("PSUBSCRIBE", "[a-c]")
	equal(t, w.do("EVAL", "return redis.call('PUBLISH', 'c', ARGV[1])", "0", "\x00\xff\r\n"), ":2", "PUBLISH")
	equal(t, events.read(), "[$message $c $\x00\xff\r\n]", "message")
	equal(t, events.read(), "[$pmessage $[a-c] $c $\x00\xff\r\n]", "pmessage")
}

func TestDisconnectedSubscriberIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, embedded.Config{})
		w, events := dial(t, s), dial(t, s)
		events.do("SUBSCRIBE", "c")
		equal(t, w.do("PUBSUB", "NUMSUB", "c"), "[$c :1]", "NUMSUB")
		_ = events.conn.Close()
		synctest.Wait()
		equal(t, w.do("PUBSUB", "NUMSUB", "c"), "[$c :0]", "NUMSUB")
	})
}

func TestQuitIsAnsweredBeforeTheConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := dial(t, start(t, embedded.Config{}))
		begin := time.Now()
		equal(t, w.do("QUIT"), "+OK", "QUIT")
		if _, err := w.in.ReadByte(); err != io.EOF {
			t.Errorf("got %v, want EOF", err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}
