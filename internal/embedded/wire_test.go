package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
)

// wire is a connection that shows replies as they were sent.
type wire struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func newWire(t testing.TB, conn net.Conn) *wire {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	return &wire{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// do sends a command and returns the reply in one line, such as [:1 $a _].
func (w *wire) do(args ...string) string {
	w.t.Helper()
	w.send(args...)
	return w.read()
}

func (w *wire) send(args ...string) {
	w.t.Helper()
	var request strings.Builder
	request.WriteString(fmt.Sprintf("*%d\r\n", len(args)))
	for _, arg := range args {
		request.WriteString(fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg))
	}
	if _, err := io.WriteString(w.conn, request.String()); err != nil {
		w.t.Fatalf("sending %.80q: %v", args, err)
	}
}

func (w *wire) read() string {
	w.t.Helper()
	reply, err := readReply(w.in)
	if err != nil {
		w.t.Fatalf("reading a reply: %v", err)
	}
	return reply
}

func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch {
	case strings.ContainsRune("$*%~>", rune(line[0])) && n < 0:
		return line, nil
	case line[0] == '$':
		data := make([]byte, n+2)
		_, err := io.ReadFull(r, data)
		return "$" + string(data[:n]), err
	case line[0] == '%':
		return readReplies(r, line[:1], 2*n)
	case strings.ContainsRune("*~>", rune(line[0])):
		return readReplies(r, line[:1], n)
	}
	return line, nil
}

func readReplies(r *bufio.Reader, kind string, n int) (string, error) {
	items := make([]string, n)
	for i := range items {
		var err error
		if items[i], err = readReply(r); err != nil {
			return "", err
		}
	}
	return strings.TrimPrefix(kind, "*") + "[" + strings.Join(items, " ") + "]", nil
}

func start(t testing.TB, cfg embedded.Config) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

func dial(t testing.TB, s *embedded.Server) *wire {
	t.Helper()
	conn, err := s.Dial(t.Context(), "tcp", "127.0.0.1:6379")
	if err != nil {
		t.Fatal(err)
	}
	return newWire(t, conn)
}

// options are what the daemon's go-redis client needs to reach s in memory.
func options(s *embedded.Server, protocol int) *redis.Options {
	return &redis.Options{
		Addr:     "127.0.0.1:6379",
		Protocol: protocol,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return s.Dial(ctx, network, addr)
		},
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func client(t testing.TB, s *embedded.Server) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(options(s, 3))
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func equal(t testing.TB, got, want, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
