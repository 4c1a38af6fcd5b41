package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"keyfuse": main})
}

// The scripts of testdata/plain need no Redis of their own. $EMBEDDED is a
// redis.url on a port that nobody uses.
func TestScriptsWithoutRedis(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/plain", Cmds: commands(), Setup: setup})
}

// Each script of testdata/redis has a redis-server of its own: $KEYFUSE_REDIS_URL,
// and $PORT and $SOCKET for other ways to it.
func TestScriptsOnRedis(t *testing.T) {
	runScripts(t, "redis", func(t *testing.T) map[string]string {
		server := redistest.Start(t)
		return map[string]string{"KEYFUSE_REDIS_URL": server.URL(), "PORT": portOf(server.Addr()), "SOCKET": server.Socket()}
	})
}

// Those of testdata/tls have one that speaks TLS on $PORT and asks for a
// certificate, such as $CERT with $KEY; $CA signed its own. $PLAIN is the port
// of one that speaks no TLS.
func TestScriptsOnTLS(t *testing.T) {
	runScripts(t, "tls", func(t *testing.T) map[string]string {
		server := redistest.StartTLS(t)
		return map[string]string{
			"PORT": portOf(server.Addr()), "CA": server.CAFile, "CERT": server.CertFile, "KEY": server.KeyFile,
			"PLAIN": portOf(redistest.Start(t).Addr()),
		}
	})
}

// Those of testdata/sentinel have three sentinels, $SENTINEL1 to 3, which watch
// a master, $PORT, and its replica, $REPLICA.
func TestScriptsOnSentinel(t *testing.T) {
	runScripts(t, "sentinel", func(t *testing.T) map[string]string {
		all := redistest.StartSentinel(t, 1, 3)
		env := map[string]string{"PORT": portOf(all.Servers[0].Addr()), "REPLICA": portOf(all.Servers[1].Addr()), "MASTER": redistest.MasterName}
		for i, addr := range all.Addrs() {
			env["SENTINEL"+strconv.Itoa(i+1)] = addr
		}
		return env
	})
}

// Those of testdata/cluster have a Cluster of three masters, $NODE1 to 3.
func TestScriptsOnCluster(t *testing.T) {
	runScripts(t, "cluster", func(t *testing.T) map[string]string {
		env := map[string]string{}
		for i, addr := range redistest.StartCluster(t, 3, 0).Addrs() {
			env["NODE"+strconv.Itoa(i+1)] = addr
		}
		return env
	})
}

// runScripts runs each script of a folder beside what start starts for it.
func runScripts(t *testing.T, folder string, start func(t *testing.T) map[string]string) {
	files, err := filepath.Glob("testdata/" + folder + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			vars := start(t)
			testscript.Run(t, testscript.Params{
				Files: []string{file}, Cmds: commands(),
				Setup: func(env *testscript.Env) error {
					env.Setenv("GORACE", fastExit)
					env.Setenv("KEYFUSE_HTTP", "off") // many daemons, and one port by default
					for name, value := range vars {
						env.Setenv(name, value)
					}
					return nil
				},
			})
		})
	}
}

func portOf(addr string) string { return addr[strings.LastIndex(addr, ":")+1:] }

// fastExit keeps the race detector from waiting a second at each exit.
const fastExit = "atexit_sleep_ms=0"

func setup(env *testscript.Env) error {
	env.Setenv("GORACE", fastExit)
	env.Setenv("KEYFUSE_HTTP", "off")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	env.Setenv("EMBEDDED", embeddedScheme+ln.Addr().String())
	_, port, err := net.SplitHostPort(ln.Addr().String())
	env.Setenv("PORT", port)
	return errors.Join(err, ln.Close())
}

func commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){"await": await, "eventually": eventually}
}

// await FILE REGEXP waits until a file that another process writes holds what
// matches.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE REGEXP")
	}
	until(ts, args[1], 5*time.Millisecond, func() string {
		// A file that is not there yet holds nothing.
		text, _ := os.ReadFile(ts.MkAbs(args[0]))
		return string(text)
	})
}

// eventually REGEXP COMMAND... asks with a command until what it prints matches.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually REGEXP COMMAND...")
	}
	until(ts, args[0], 50*time.Millisecond, func() string {
		ts.Check(ts.Exec(args[1], args[2:]...))
		return ts.ReadFile("stdout")
	})
}

func until(ts *testscript.TestScript, pattern string, every time.Duration, look func() string) {
	want, err := regexp.Compile(pattern)
	ts.Check(err)
	tick := time.NewTicker(every)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		text := look()
		if want.MatchString(text) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("never matched %s:\n%s", pattern, text)
		}
	}
}
