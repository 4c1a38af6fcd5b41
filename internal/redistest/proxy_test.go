//go:build unix

package redistest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestProxyForwardsBothWays(t *testing.T) {
	rdb := NewProxy(t, Start(t).Addr()).Client(t)
	big := strings.Repeat("x", 1<<20)
	if err := rdb.Set(t.Context(), "big", big, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := rdb.Get(t.Context(), "big").Result(); got != big || err != nil {
		t.Errorf("%d bytes came back, want %d; error %v", len(got), len(big), err)
	}
}

func TestCutClosesConnectionsAndLetsNewOnesIn(t *testing.T) {
	proxy := NewProxy(t, Start(t).Addr())
	rdb := proxy.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	conn := rdb.Conn()
	defer conn.Close()
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	if err := conn.Ping(t.Context()).Err(); err == nil {
		t.Error("the connection outlived Cut")
	}
	if err := proxy.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Errorf("a new connection: %v", err)
	}
}

// TestSwallowedReply is what a retrying client gets wrong: the command was
// executed, and the error says nothing of it.
func TestSwallowedReplyBelongsToACommandThatWasExecuted(t *testing.T) {
	s := Start(t)
	proxy := NewProxy(t, s.Addr())
	rdb := proxy.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	if err := rdb.Ping(t.Context()).Err(); err != nil { // the handshake's replies pass
		t.Fatal(err)
	}
	proxy.SwallowReplies(1)
	if err := rdb.Incr(t.Context(), "count").Err(); !errors.Is(err, io.EOF) {
		t.Errorf("the reply that was to be lost: %v", err)
	}
	if n, err := rdb.Get(t.Context(), "count").Int(); n != 1 || err != nil {
		t.Errorf("counted %d, error %v", n, err)
	}
}

func TestSwallowRepliesToLosesOnlyThatCommandsReplies(t *testing.T) {
	s := Start(t)
	proxy := NewProxy(t, s.Addr())
	rdb := proxy.Client(t) // go-redis retries, and so executes three times
	proxy.SwallowRepliesTo("incr", 2)
	if err := rdb.Set(t.Context(), "other", "", 0).Err(); err != nil {
		t.Errorf("another command: %v", err)
	}
	if n, err := rdb.Incr(t.Context(), "count").Result(); n != 3 || err != nil {
		t.Errorf("counted %d, error %v; want 3 after two lost replies", n, err)
	}
}

func TestFrozenPathHoldsBackUntilThawed(t *testing.T) {
	proxy := NewProxy(t, Start(t).Addr())
	rdb := proxy.Client(t, once)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Freeze()
	proxy.Freeze() // again changes nothing
	wantNoAnswer(t, rdb)
	conn, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatalf("a new connection: %v", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 16)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes through a frozen path, error %v", n, err)
	}
	proxy.Thaw()
	proxy.Thaw()
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "+PONG\r\n" {
		t.Errorf("what was held back: %q, %v", line, err)
	}
}

func TestDelayHoldsEachWayUntilCleared(t *testing.T) {
	proxy := NewProxy(t, Start(t).Addr())
	rdb := proxy.Client(t)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	const each = 50 * time.Millisecond
	proxy.Delay(each)
	start := time.Now()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 2*each {
		t.Errorf("a round trip took %s, want %s at least", took, 2*each)
	}
	proxy.Delay(time.Hour)
	impatient := proxy.Client(t, once)
	wantNoAnswer(t, impatient)
	proxy.Delay(0)
	if err := proxy.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Errorf("cleared: %v", err)
	}
}

// On a net.Pipe no two writes are read at once, as packets may be.
func TestSplitWritesPiecesUntilCleared(t *testing.T) {
	client, target := net.Pipe()
	l := &link{proxy: &Proxy{}, client: client, target: target, done: make(chan struct{})}
	defer l.close()
	const reply = "$11\r\nhello world\r\n"
	for _, n := range []int{1, 7, 1000, 0} {
		l.proxy.Split(n)
		var writing sync.WaitGroup
		writing.Go(func() { l.write(target, []byte(reply)) })
		var got string
		for buf := make([]byte, 1024); len(got) < len(reply); {
			read, err := client.Read(buf)
			if want := len(reply) - len(got); err != nil || n != 0 && read != min(n, want) || n == 0 && read != want {
				t.Fatalf("Split(%d): read %d bytes, error %v", n, read, err)
			}
			got += string(buf[:read])
		}
		writing.Wait()
		if got != reply {
			t.Errorf("Split(%d): %q came", n, got)
		}
	}
}

func TestSplitConversationIsUnderstood(t *testing.T) {
	proxy := NewProxy(t, Start(t).Addr())
	rdb := proxy.Client(t)
	value := strings.Repeat("x\r\n", 5_000)
	for _, n := range []int{1, 3, 1400} {
		proxy.Split(n)
		if err := rdb.Set(t.Context(), "order:42", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := rdb.Get(t.Context(), "order:42").Result(); got != value || err != nil {
			t.Errorf("Split(%d): %d bytes, error %v", n, len(got), err)
		}
	}
}

func TestProxyOfADownTargetClosesConnections(t *testing.T) {
	s := Start(t)
	proxy := NewProxy(t, s.Addr())
	s.Stop()
	conn, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read: %v", err)
	}
	s.Restart()
	if err := proxy.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Errorf("the target is back: %v", err)
	}
}

func TestProxyLeavesNoGoroutineBehind(t *testing.T) {
	s := Start(t)
	before := goleak.IgnoreCurrent()
	r := record(t, func(t testing.TB) {
		proxy := NewProxy(t, s.Addr())
		if err := proxy.Client(t).Ping(t.Context()).Err(); err != nil {
			t.Errorf("ping: %v", err)
		}
		proxy.Freeze() // a held-back chunk must not keep the proxy alive
		conn, err := net.Dial("tcp", proxy.Addr())
		if err != nil {
			t.Errorf("dial: %v", err)
			return
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := conn.Write([]byte("PING\r\n")); err != nil {
			t.Errorf("write: %v", err)
		}
	})
	if r.failed {
		t.Error(r.verdict)
	}
	goleak.VerifyNone(t, before)
}
