package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

func TestTheExactMissingRulesAreSaid(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	root := s.Client(t)
	define(t, root, []string{"c"}) // else nobody listens for counters
	for _, user := range []struct {
		name, acl string
		rules     []string
	}{
		{"all", "~* &* +@all", nil},
		{"least", "~* &__keyevent@* &keyfuse:* +@read +@write +@scripting +@pubsub +@connection +info +time +config|get +config|set", nil},
		{"nochannels", "~* resetchannels +@all", []string{"&__keyevent@0__:expired", "&__keyevent@0__:incrby", "&keyfuse:wake:0"}},
		{"nocounters", "~* resetchannels &__keyevent@*__:expired &keyfuse:* +@all", []string{"&__keyevent@0__:incrby"}},
		{"nopubsub", "~* &* +@all -@pubsub", []string{"+publish", "+subscribe"}},
		{"noscripts", "~* &* +@all -@scripting", []string{"+eval", "+evalsha"}},
		{"nokeys", "&* +@all", []string{"~*", "~class:*", "~keyfuse:*"}},
		{"noclass", "~keyfuse:* ~keyfuse-* &* +@all", []string{"~class:*"}},
		{"readonlyclass", "~keyfuse:* ~keyfuse-* %R~class:* &* +@all", []string{"~class:*"}},
		{"nozadd", "~* &* +@all -zadd -scan", []string{"+zadd", "+scan"}},
		{"nolists", "~* &* +@all -@list -append", []string{"+append", "+lpush", "+ltrim", "+lrange"}},
	} {
		t.Run(user.name, func(t *testing.T) {
			args := []any{"ACL", "SETUSER", user.name, "on", ">p"}
			for word := range strings.FieldsSeq(user.acl) {
				args = append(args, word)
			}
			set(t, root, args...)
			rdb := s.Client(t, func(o *redis.Options) { o.Username, o.Password = user.name, "p" })
			checks := Run(t.Context(), rdb, Options{})
			if user.rules == nil {
				want(t, checks, "permissions", OK)
				return
			}
			want(t, checks, "permissions", Fail, "lacks "+strings.Join(user.rules, " ")+"\n", "ACL SETUSER "+user.name)
		})
	}
}

// Every command that the scripts and the store send is one whose permission is
// asked for, but for those that are tried and INFO, which they do without.
func TestPermissionIsAskedForEveryCommandOfTheWireFormat(t *testing.T) {
	var asked []string
	for _, command := range words(keyed+"|"+keyless, "key") {
		asked = append(asked, command[0])
	}
	asked = append(asked, "PIPELINED", "PUBLISH", "SUBSCRIBE", "INFO", "EVALSHA", "WAIT")
	calls := regexp.MustCompile(`redis\.p?call\('(\w+)'|\b(?:rdb|p|pipe)\.(?:Do\(ctx, "(\w+)"|([A-Z]\w+?)(?:WithScores)?\(ctx)`)
	sent := 0
	for _, pattern := range []string{"../wire/*.go", "../wire/lua/*.lua"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal("no files", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, call := range calls.FindAllStringSubmatch(string(text), -1) {
				sent++
				if command := strings.ToUpper(call[1] + call[2] + call[3]); !slices.Contains(asked, command) {
					t.Errorf("%s sends %s, and the doctor does not ask whether it may", file, command)
				}
			}
		}
	}
	if sent < 100 {
		t.Errorf("found only %d commands", sent)
	}
}
