//go:build unix

package redistest

import (
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"testing"
)

func findBinary(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	install := "no " + name + " on the PATH: apt-get install redis-server, or brew install redis"
	if os.Getenv(requireEnv) == "1" {
		t.Fatalf("redistest: %s (%s=1 forbids to skip)", install, requireEnv)
	}
	t.Skipf("redistest: %s", install)
	return ""
}

// makeDir is no t.TempDir: that one's path holds the test's name, and a Unix
// socket's path may have some 100 bytes only.
func makeDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "keyfuse-redis-")
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("redistest: %v", err)
		}
	})
	return dir
}

// The lowest port given to servers, and one above the highest: they end below
// the ports that systems give to outgoing connections. A client that redials a
// stopped server could be given the server's own port, connect to itself and
// keep it.
const lowestPort, endOfPorts = 10_000, 32_000

// pickPort picks a port that is free now.
func pickPort() (int, error) { return pickFree(endOfPorts) }

// pickFree picks a port below end that is free now, and with it the ports that
// lie by the offsets above it.
func pickFree(end int, offsets ...int) (port int, err error) {
	for range 100 {
		port = lowestPort + rand.IntN(end-lowestPort)
		err = probe(port)
		for _, offset := range offsets {
			if err == nil {
				err = probe(port + offset)
			}
		}
		if err == nil {
			return port, nil
		}
	}
	return 0, err
}

func probe(port int) error {
	l, err := net.Listen("tcp4", loopback(port))
	if err != nil {
		return err
	}
	return l.Close()
}
