package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// answer is an error that Redis answers.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestARefusalSaysWhatToDo(t *testing.T) {
	const inCluster = "this is a node of a Redis Cluster: set redis.cluster to true, and redis.addrs to some of its nodes in the place of redis.url"
	for text, want := range map[string]struct {
		next  string
		final bool
	}{
		"MOVED 8691 10.0.0.1:6379":                                                      {inCluster, true},
		"CROSSSLOT Keys in request don't hash to the same slot":                         {inCluster, true},
		"ERR Script attempted to access a non local key in a cluster node script: 1":    {inCluster, true},
		"ERR This instance has cluster support disabled":                                {"this is no Redis Cluster: take redis.cluster out", true},
		"CLUSTERDOWN The cluster is down":                                               {"some slots of the Cluster have no master, or most masters are away", false},
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to no": {toMaster, false},
		"READONLY You can't write against a read only replica.":                         {toMaster, false},
		"NOPERM this user has no permissions to run the 'config|set' command":           {"allow it: ACL SETUSER ann +config|set;", true},
		"NOPERM User ann has no permissions to run the 'evalsha' command":               {"allow it: ACL SETUSER ann +evalsha;", true},
		"NOPERM this user has no permissions to access one of the keys used as arguments": {
			"allow it: ACL SETUSER ann ~* ", true,
		},
		"NOPERM this user has no permissions to access one of the channels used as arguments": {
			"allow it: ACL SETUSER ann &keyfuse:* &__keyevent@*;", true,
		},
		"ERR The user executing the script can't run this command or subcommand script: 8f, on @user_script:9.": {
			"allow it: ACL SETUSER ann +@read +@write +publish +time;", true,
		},
		"ERR something new": {"keyfuse doctor looks for the reason", false},
	} {
		end := endpoint{kind: kindStandalone, opts: redis.Options{Username: "ann"}}
		p := explain(end.explain(fmt.Errorf("call: %w", answer(text))))
		if p.code != exitRedis || !strings.HasPrefix(p.next, want.next) || p.final != want.final || strings.Contains(p.Error(), "script:") {
			t.Errorf("%s:\ngot  %d %s, final: %t\nwant %s, %t", text, p.code, p, p.final, want.next, want.final)
		}
	}
}

func TestAWayThatBreaksSaysWhatMayBeWrongWithTLS(t *testing.T) {
	for _, tc := range []struct {
		tls  *tls.Config
		err  error
		want string
	}{
		{nil, io.EOF, "begin redis.url with rediss://"},
		{&tls.Config{}, fmt.Errorf("dial: %w", context.DeadlineExceeded), "begin redis.url with redis://"},
		{&tls.Config{}, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "what listens there speaks no TLS"},
		{&tls.Config{}, errors.New("remote error: tls: unknown certificate authority"), "Redis does not accept redis.tls.cert and redis.tls.key"},
		{&tls.Config{}, io.EOF, "start it, or name another"},
	} {
		end := endpoint{kind: kindStandalone, opts: redis.Options{TLSConfig: tc.tls}}
		if p := explain(end.explain(tc.err)); p.code != exitRedis || !strings.Contains(p.next, tc.want) {
			t.Errorf("%v: got %d %s, want %s", tc.err, p.code, p, tc.want)
		}
	}
}

// Whoever does what each refusal says gets to the end.
func TestTheRulesThatRefusalsNameAreEnough(t *testing.T) {
	t.Chdir(t.TempDir())
	server := redistest.Start(t)
	server.CLI("ACL", "SETUSER", "ann", "on", ">hunter2", "resetkeys", "resetchannels", "-@all", "+hello", "+client|setname")
	url := strings.Replace(server.URL(), "//", "//ann:hunter2@", 1)
	rule := regexp.MustCompile(`allow it: ACL SETUSER (ann [^;(]+)`)
	for range 10 {
		var stderr bytes.Buffer
		code := run(t.Context(), []string{"keyfuse", "schedule", "t", "--in", "1h", "--if-exists", "replace", "--id", "a"},
			only("KEYFUSE_REDIS_URL", url), strings.NewReader(""), io.Discard, &stderr)
		if code == exitDone {
			return
		}
		found := rule.FindStringSubmatch(stderr.String())
		if code != exitRedis || found == nil {
			t.Fatalf("code %d, no rule in %s", code, &stderr)
		}
		server.CLI(append([]string{"ACL", "SETUSER"}, strings.Fields(found[1])...)...)
	}
	t.Errorf("still refused: %s", server.CLI("ACL", "LIST"))
}
