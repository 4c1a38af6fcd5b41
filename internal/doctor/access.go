package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// may asks Redis which commands this user may run. ARGV are commands, each
// behind the number of its words; the answer has 1 or 0 for each, or is -1 where
// Redis can't say (before 7.0).
var may = redis.NewScript(`
if not redis.acl_check_cmd then return { -1 } end
local answers, i = {}, 1
while ARGV[i] do
  local n, words = tonumber(ARGV[i]), {}
  for j = 1, n do words[j] = ARGV[i + j] end
  local known, allowed = pcall(redis.acl_check_cmd, unpack(words))
  answers[#answers + 1] = (allowed or not known) and 1 or 0
  i = i + n + 1
end
return answers`)

// What the scripts, the daemons and the client send; KEY stands for each kind of
// key. Words that a command needs to be understood are made up.
const (
	keyed = `GET KEY|SET KEY 1|SETNX KEY 1|DEL KEY|EXISTS KEY|MGET KEY|MSET KEY 1|TYPE KEY|INCR KEY
PTTL KEY|PEXPIRE KEY 1|PEXPIREAT KEY 1|PEXPIRETIME KEY|GETRANGE KEY 0 1|STRLEN KEY|APPEND KEY 1
HSET KEY f 1|HGET KEY f|HMGET KEY f|HGETALL KEY|HKEYS KEY|HDEL KEY f|HEXISTS KEY f|HINCRBY KEY f 1|HLEN KEY|HSCAN KEY 0
SADD KEY 1|SREM KEY 1|SMEMBERS KEY|SCARD KEY|LPUSH KEY 1|LTRIM KEY 0 0|LRANGE KEY 0 0
ZADD KEY 1 1|ZREM KEY 1|ZSCORE KEY 1|ZMSCORE KEY 1|ZRANGE KEY 0 0|ZCARD KEY|ZCOUNT KEY 0 1
ZRANK KEY 1|ZSCAN KEY 0|ZREMRANGEBYRANK KEY 0 0`
	keyless = `SCAN 0|TIME|PING`
)

func words(commands, key string) [][]string {
	var list [][]string
	for command := range strings.FieldsFuncSeq(commands, func(r rune) bool { return r == '|' || r == '\n' }) {
		list = append(list, strings.Fields(command))
		for i, word := range list[len(list)-1] {
			if word == "KEY" {
				list[len(list)-1][i] = key
			}
		}
	}
	return list
}

// permissions finds the ACL rules that this user lacks.
func (e *exam) permissions(ctx context.Context) Check {
	if c, skip := e.embedded(); skip {
		return c
	}
	if name, err := e.rdb.Do(ctx, "ACL", "WHOAMI").Text(); err == nil {
		e.user = name
	}
	missing, err := e.commandRules(ctx)
	if err != nil {
		return blind("this user's permissions", err, "see that it has ~* +@read +@write +@scripting +@pubsub +@connection +time")
	}
	channels, err := e.channelRules(ctx)
	if err != nil {
		return blind("this user's channels", err, "see that it has &keyfuse:* and &__keyevent@*")
	}
	missing = append(missing, channels...)
	if len(missing) > 0 {
		return fail("ACL SETUSER "+e.user+" "+strings.Join(missing, " ")+"\nand ACL SAVE, or the same in redis.conf",
			"%s lacks %s", e.who(), strings.Join(missing, " "))
	}
	return ok("%s may do all that is needed", e.who())
}

// anyUser stands in rules for a user who may not ask for its own name.
const anyUser = "<user>"

func (e *exam) who() string {
	if e.user == anyUser {
		return "this user"
	}
	return fmt.Sprintf("user %q", e.user)
}

// keyKind is a kind of key, by an example, with the rule that opens it.
type keyKind struct{ example, rule string }

func (e *exam) keyKinds() []keyKind {
	id := e.opts.IDPrefix + "keyfuse-doctor"
	return []keyKind{
		{e.names.Fuse(id), "~" + e.names.Fuse(e.opts.IDPrefix) + "*"},
		{e.names.Class(id), "~" + e.names.Class(e.opts.IDPrefix) + "*"},
		{e.names.Of("doctor"), "~" + e.names.Root() + "*"},
	}
}

// commandRules are the rules that are missing for keys and commands.
func (e *exam) commandRules(ctx context.Context) ([]string, error) {
	kinds := e.keyKinds()
	var asked [][]string
	for _, kind := range kinds {
		asked = append(asked, words(keyed, kind.example)...)
	}
	free := words(keyless, "")
	allowed, err := e.ask(ctx, slices.Concat(asked, free))
	if denied(err) {
		return []string{"+eval", "+evalsha"}, nil
	}
	if err != nil {
		return nil, err
	}
	var missing []string
	for i, command := range free {
		if !allowed[len(asked)+i] {
			missing = append(missing, rule(command))
		}
	}
	n := len(asked) / len(kinds)
	return append(judgeKeys(kinds, asked[:n], allowed[:len(asked)]), missing...), nil
}

func rule(command []string) string { return "+" + strings.ToLower(command[0]) }

// judgeKeys tells a command that is not allowed from a key that is not. allowed
// holds, for each kind of key, an answer for each command. A kind for which all
// commands are refused is closed; a command that is refused for all open kinds
// is not allowed, and one that is refused for some shows a kind that is half
// open (%R~).
func judgeKeys(kinds []keyKind, commands [][]string, allowed []bool) []string {
	var missing []string
	var open []int
	for k, kind := range kinds {
		if slices.Contains(allowed[k*len(commands):(k+1)*len(commands)], true) {
			open = append(open, k)
		} else {
			missing = append(missing, kind.rule)
		}
	}
	for c, command := range commands {
		var refused []string
		for _, k := range open {
			if !allowed[k*len(commands)+c] {
				refused = append(refused, kinds[k].rule)
			}
		}
		if len(refused) > 0 && len(refused) == len(open) {
			refused = []string{rule(command)}
		}
		for _, r := range refused {
			if !slices.Contains(missing, r) {
				missing = append(missing, r)
			}
		}
	}
	return missing
}

// errTooOld is an answer of Redis: it has no redis.acl_check_cmd.
var errTooOld = errNoSetting

// ask asks for each command whether it is allowed.
func (e *exam) ask(ctx context.Context, commands [][]string) ([]bool, error) {
	var args []any
	for _, command := range commands {
		args = append(args, strconv.Itoa(len(command)))
		for _, word := range command {
			args = append(args, word)
		}
	}
	answers, err := may.Run(ctx, e.rdb, nil, args...).Int64Slice()
	if err != nil {
		return nil, err
	}
	if len(answers) != len(commands) {
		return nil, errTooOld
	}
	allowed := make([]bool, len(answers))
	for i, answer := range answers {
		allowed[i] = answer == 1
	}
	return allowed, nil
}

// channelRules are the rules that are missing for publish and subscribe.
func (e *exam) channelRules(ctx context.Context) ([]string, error) {
	wake, expired := e.names.Wake(e.db), e.names.Expired(e.db)
	var missing []string
	note := func(err error, command, channel string) error {
		switch {
		case err == nil:
		case !denied(err):
			return err
		case strings.Contains(err.Error(), "channel"):
			missing = append(missing, "&"+channel)
		default:
			missing = append(missing, "+"+command)
		}
		return nil
	}
	channels := []string{wake}
	if !e.opts.NoNotifications {
		channels = append(channels, expired)
		if len(e.thresholds) > 0 { // else no node listens to it
			channels = append(channels, e.names.Counted(e.db))
		}
	}
	for _, channel := range channels {
		sub := e.rdb.Subscribe(ctx, channel)
		_, err := sub.Receive(ctx)
		// Nothing was sent on it that could be lost.
		_ = sub.Close()
		if err := note(err, "subscribe", channel); err != nil {
			return nil, err
		}
	}
	// A wake-up for no task: the nodes look, and find what they knew.
	err := note(e.rdb.Publish(ctx, wake, "").Err(), "publish", wake)
	slices.Sort(missing)
	return slices.Compact(missing), err
}
