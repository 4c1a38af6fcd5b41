//go:build unix

package redistest

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const shippedConf = "../../redis.conf"

func TestShippedConfHoldsWhatItPromises(t *testing.T) {
	rdb := StartConfig(t, shippedConf).Client(t)
	for name, want := range map[string]string{
		"protected-mode":            "yes",
		"timeout":                   "0",
		"tcp-keepalive":             "60",
		"notify-keyspace-events":    "xE",
		"hz":                        "100",
		"active-expire-effort":      "1",
		"appendonly":                "yes",
		"appendfsync":               "everysec",
		"save":                      "",
		"auto-aof-rewrite-min-size": "536870912",
		"maxmemory":                 "0",
		"maxmemory-policy":          "noeviction",
		"latency-monitor-threshold": "10",
	} {
		if got := configGet(t, rdb, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	limits := configGet(t, rdb, "client-output-buffer-limit")
	if want := "pubsub 268435456 67108864 60"; !strings.HasSuffix(limits, want) {
		t.Errorf("client-output-buffer-limit is %q, want %q", limits, want)
	}
}

// The file is read for this, since every server of a test has its own port.
func TestShippedConfListensOnLoopbackAndTheUsualPort(t *testing.T) {
	settings := readConf(t)
	if got := settings["bind"]; got != "127.0.0.1 -::1" {
		t.Errorf("bind %s", got)
	}
	if got := settings["port"]; got != "6379" {
		t.Errorf("port %s", got)
	}
}

func TestShippedConfKeepsJobsOverARestart(t *testing.T) {
	s := StartConfig(t, shippedConf)
	rdb := s.Client(t)
	if err := rdb.Set(t.Context(), "class:order:42", "cancel-order", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Restart()
	if got, err := rdb.Get(t.Context(), "class:order:42").Result(); got != "cancel-order" {
		t.Errorf("after a crash: %q, %v", got, err)
	}
}

func TestShippedUserMayDoADaemonsWorkAndNoMore(t *testing.T) {
	s := StartConfig(t, shippedConf)
	rules := strings.Fields(readConf(t)["# user"])
	if len(rules) == 0 || rules[0] != "keyfuse" {
		t.Fatalf("no commented `# user keyfuse` line in %s", shippedConf)
	}
	admin := s.Client(t)
	if err := admin.Do(t.Context(), args("ACL SETUSER", rules...)...).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := s.Client(t, func(o *redis.Options) { o.Username, o.Password = "keyfuse", "CHANGE-ME" })
	for _, allowed := range []string{
		"PING", "TIME", "SELECT 0", "INFO server", "CONFIG GET maxmemory-policy", "ACL WHOAMI", "CLIENT SETNAME node-1",
		"SET order:42 order:42 EX 1800", "SCAN 0 MATCH class:*", "UNLINK order:42", "MULTI", "EXEC",
		"ZADD keyfuse:due:cancel-order 1 order:42", "XADD events * id order:42", "LPUSH work order:42",
		"SCRIPT LOAD return", "EVAL return(redis.call('TIME')) 0", "PUBLISH keyfuse:wake:0 cancel-order",
		"EVAL return(redis.call('PUBLISH',KEYS[1],'')) 1 keyfuse:wake:0",
		"SUBSCRIBE __keyevent@0__:expired keyfuse:wake:0", "PSUBSCRIBE __keyevent@*__:expired",
	} {
		// One connection for each: a subscription changes what it may be used for.
		if err := onOwnConnection(t, rdb, allowed); err != nil {
			t.Errorf("%s: %v", allowed, err)
		}
	}
	for _, forbidden := range []string{
		"FLUSHALL", "KEYS *", "CONFIG SET notify-keyspace-events KEA", "SHUTDOWN NOSAVE", "ACL LIST",
		"CLIENT LIST", "REPLICAOF no one", "SCRIPT FLUSH", "FUNCTION LIST",
		"SUBSCRIBE private", "PUBLISH private x", "SUBSCRIBE __keyevent@0__:set",
	} {
		if err := onOwnConnection(t, rdb, forbidden); !redis.IsPermissionError(err) {
			t.Errorf("%s: got %v, want NOPERM", forbidden, err)
		}
	}
}

func onOwnConnection(t *testing.T, rdb *redis.Client, command string) error {
	t.Helper()
	conn := redis.NewClient(rdb.Options())
	defer conn.Close()
	err := conn.Do(t.Context(), args(command)...).Err()
	if command == "EXEC" && err != nil && err.Error() == "ERR EXEC without MULTI" {
		return nil // permitted, which is the question
	}
	return err
}

func args(command string, more ...string) []any {
	var out []any
	for _, word := range append(strings.Fields(command), more...) {
		out = append(out, word)
	}
	return out
}

// readConf returns the file's settings by name; the first of the commented
// users is under "# user".
func readConf(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open(shippedConf)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	settings := make(map[string]string)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if user, ok := strings.CutPrefix(line, "# user "); ok && settings["# user"] == "" {
			settings["# user"] = user
			continue
		}
		if name, value, ok := strings.Cut(line, " "); ok && name != "#" {
			settings[name] = value
		}
	}
	return settings
}
