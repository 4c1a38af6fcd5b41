package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// requireEnv turns the skip for a missing server into a failure.
const requireEnv = "KEYFUSE_REQUIRE_SERVERS"

func open(t *testing.T, name string) *Server {
	t.Helper()
	s, err := Start(t.Context(), t.TempDir(), name)
	if errors.Is(err, ErrMissing) && os.Getenv(requireEnv) != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestServersListenOnLoopbackAndLeaveNothing(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			s := open(t, name)
			pids := s.Pids()
			if len(pids) == 0 { // which may have used less than a tick of CPU
				t.Error("it has no process")
			}
			for _, addr := range listening(t, s) {
				if ip := net.ParseIP(addr); !ip.IsLoopback() {
					t.Errorf("it listens on %s", addr)
				}
			}
			if n, err := s.Memory(t.Context()); err != nil || n < 0 || n == 0 && name != "postgres" {
				t.Errorf("memory %d, %v", n, err)
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			awaitGone(t, pids)
			if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its folder is left: %v", err)
			}
			if s.CPU() != 0 || len(s.Pids()) != 0 {
				t.Errorf("after its end, processes %v have used %s", s.Pids(), s.CPU())
			}
		})
	}
}

// TestServersOfOneKindDoNotMeet starts two of each at the same time.
func TestServersOfOneKindDoNotMeet(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			first, second := open(t, name), open(t, name)
			if first.Addr == second.Addr {
				t.Errorf("both are at %s", first.Addr)
			}
			if err := first.Stop(); err != nil {
				t.Fatal(err)
			}
			if len(second.Pids()) == 0 {
				t.Error("the second ended with the first")
			}
		})
	}
}

func TestUnknownNames(t *testing.T) {
	if _, err := Start(t.Context(), t.TempDir(), "kafka"); err == nil || !strings.Contains(err.Error(), "beanstalkd, postgres") {
		t.Errorf("an error that says %v", err)
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	_, err := Start(t.Context(), dir, "redis")
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("an error that says %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

func TestServersThatDoNotTell(t *testing.T) {
	s := open(t, "beanstalkd")
	if _, err := s.Count(t.Context()); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if _, err := s.Longest(t.Context()); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if err := s.Reset(t.Context()); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

func TestRedisCountsWhatClientsSendAndNoScriptsCommands(t *testing.T) {
	s := open(t, "redis")
	counted, err := s.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: 1, DisableIdentity: true, Protocol: 2})
	defer client.Close()
	for range 10 {
		if err := client.Eval(t.Context(), "return {redis.call('TIME'), redis.call('PING')}", nil).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Set(t.Context(), "[0 lua]", " lua]", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := counted(t.Context()); n != 11+1 || err != nil { // with the connection's HELLO
		t.Errorf("%d commands were counted of 11 and a HELLO, %v", n, err)
	}
	// Nobody watches any more, which would cost the server something.
	err = s.await(t.Context(), func() error {
		clients, err := client.ClientList(t.Context()).Result()
		if strings.Contains(clients, "cmd=monitor") {
			err = errors.New("a MONITOR is left")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRedisLongestBlock(t *testing.T) {
	s := open(t, "redis")
	longest := func() time.Duration {
		d, err := s.Longest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	const busy = "for i = 1, 2e7 do end return 1"
	if err := client.Eval(t.Context(), busy, nil).Err(); err != nil {
		t.Fatal(err)
	}
	if d := longest(); d < 10*time.Millisecond {
		t.Errorf("a busy script blocked for %s", d)
	}
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := longest(); d > 10*time.Millisecond {
		t.Errorf("after Reset, the longest block was %s", d)
	}
}

func TestRedisIsDurable(t *testing.T) {
	s := open(t, "redis")
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	for name, want := range map[string]string{"appendonly": "yes", "appendfsync": "everysec"} {
		if got := client.ConfigGet(t.Context(), name).Val()[name]; got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestPostgresIsDurableAndCountsTransactions(t *testing.T) {
	s := open(t, "postgres")
	conn, err := pgx.Connect(t.Context(), s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for name, want := range map[string]string{"fsync": "on", "synchronous_commit": "on", "shared_buffers": "256MB"} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	counted, err := s.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE t AS SELECT generate_series(1, 10000) AS n"); err != nil {
		t.Fatal(err)
	}
	// A connection reports what it has done when it closes, at the latest.
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Memory(t.Context()); err != nil || n < 10_000*4 {
		t.Errorf("10,000 rows take %d bytes, %v", n, err)
	}
	err = s.await(t.Context(), func() error {
		if n, err := counted(t.Context()); err != nil || n < 1 {
			return errors.Join(errors.New("nothing was counted"), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStopEndsWhatDoesNotListen(t *testing.T) {
	s := open(t, "redis")
	pid := s.Pids()[0]
	// A stopped process sees no SIGTERM, only SIGKILL.
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.processes[0].grace = time.Millisecond
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, []int{pid})
}

// TestServersEndWithTheirParent starts this test's program as the parent, and kills it.
func TestServersEndWithTheirParent(t *testing.T) {
	const asParent, below = "KEYFUSE_TEST_PARENT", "KEYFUSE_TEST_DIR"
	if name := os.Getenv(asParent); name != "" {
		s, err := Start(t.Context(), os.Getenv(below), name)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.dir)
		<-t.Context().Done() // never: it is killed
	}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			parent := exec.Command(os.Args[0], "-test.run", "^TestServersEndWithTheirParent$")
			parent.Env = append(os.Environ(), asParent+"="+name, below+"="+t.TempDir())
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			line := make([]byte, 4096)
			n, err := out.Read(line)
			if err != nil {
				t.Fatal(err)
			}
			if os.Getenv(requireEnv) != "1" && bytes.Contains(line[:n], []byte(ErrMissing.Error())) {
				_ = parent.Wait()
				t.Skipf("%s", line[:n])
			}
			pids := tree([]int{parent.Process.Pid})[1:]
			if len(pids) == 0 {
				t.Fatalf("%s has no processes; the parent said %s", name, line[:n])
			}
			_ = parent.Process.Kill()
			_ = parent.Wait()
			awaitGone(t, pids)
		})
	}
}
