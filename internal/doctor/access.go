package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
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
	keyed = `GET KEY|SET KEY 1|SETNX KEY 1|DEL KEY|UNLINK KEY|EXISTS KEY|MGET KEY|MSET KEY 1|TYPE KEY|INCR KEY
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
func (s *server) permissions(ctx context.Context) Check {
	if c, skip := s.embedded(); skip {
		return c
	}
	if name, err := s.rdb.Do(ctx, "ACL", "WHOAMI").Text(); err == nil {
		s.user = name
	}
	missing, err := s.commandRules(ctx)
	if err != nil {
		return blind("this user's permissions", err, "see that it has ~* +@read +@write +@scripting +@pubsub +@connection +time")
	}
	channels, err := s.channelRules(ctx)
	if err != nil {
		return blind("this user's channels", err, "see that it has &keyfuse:* and &__keyevent@*")
	}
	missing = append(missing, channels...)
	if len(missing) > 0 {
		return fail("ACL SETUSER "+s.user+" "+strings.Join(missing, " ")+"\nand ACL SAVE, or the same in redis.conf",
			"%s lacks %s", s.who(), strings.Join(missing, " "))
	}
	return ok("%s may do all that is needed", s.who())
}

// anyUser stands in rules for a user who may not ask for its own name.
const anyUser = "<user>"

func (s *server) who() string {
	if s.user == anyUser {
		return "this user"
	}
	return fmt.Sprintf("user %q", s.user)
}

// keyKind is a kind of key, by an example, with the rule that opens it.
type keyKind struct{ example, rule string }

// anyTag stands in rules for the tags of all partitions.
func (s *server) anyTag() string {
	if s.exam.space.IsCluster() {
		return "{kf*}"
	}
	return ""
}

func (s *server) keyKinds(names wire.Names) []keyKind {
	prefix, tag := s.exam.opts.IDPrefix, s.anyTag()
	id := prefix + "keyfuse-doctor"
	return []keyKind{
		{names.Fuse(id), "~" + tag + prefix + "*"},
		{names.Class(id), "~class:" + tag + prefix + "*"},
		{names.Of("doctor"), "~keyfuse:*"},
	}
}

// commandRules are the rules that are missing for keys and commands.
func (s *server) commandRules(ctx context.Context) ([]string, error) {
	var missing []string
	for _, store := range s.stores {
		rules, err := s.commandRulesOf(ctx, s.keyKinds(store.Names))
		if err != nil {
			return nil, err
		}
		missing = append(missing, rules...)
	}
	return unique(missing), nil
}

// unique keeps the first of those that are equal.
func unique(list []string) []string {
	var kept []string
	for _, entry := range list {
		if !slices.Contains(kept, entry) {
			kept = append(kept, entry)
		}
	}
	return kept
}

func (s *server) commandRulesOf(ctx context.Context, kinds []keyKind) ([]string, error) {
	var asked [][]string
	for _, kind := range kinds {
		asked = append(asked, words(keyed, kind.example)...)
	}
	free := words(keyless, "")
	if s.exam.opts.WaitReplicas > 0 {
		free = append(free, words("WAIT 1 1", "")...)
	}
	allowed, err := s.ask(ctx, slices.Concat(asked, free))
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
func (s *server) ask(ctx context.Context, commands [][]string) ([]bool, error) {
	var args []any
	for _, command := range commands {
		args = append(args, strconv.Itoa(len(command)))
		for _, word := range command {
			args = append(args, word)
		}
	}
	answers, err := may.Run(ctx, s.rdb, nil, args...).Int64Slice()
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

// channel is one that is needed, with the rule that opens it.
type channel struct{ name, rule string }

// channels are those that the nodes listen to.
func (s *server) channels() []channel {
	var list []channel
	for _, store := range s.stores {
		wake := store.Wake(store.DB())
		list = append(list, channel{wake, "&" + strings.Replace(wake, store.Fuse(""), s.anyTag(), 1)})
	}
	if s.exam.opts.NoNotifications {
		return list
	}
	names, db := s.stores[0].Names, s.stores[0].DB()
	list = append(list, channel{names.Expired(db), "&" + names.Expired(db)})
	if s.counting() { // else no node listens to it
		list = append(list, channel{names.Counted(db), "&" + names.Counted(db)})
	}
	return list
}

// channelRules are the rules that are missing for publish and subscribe.
func (s *server) channelRules(ctx context.Context) ([]string, error) {
	var missing []string
	note := func(err error, command string, c channel) error {
		switch {
		case err == nil:
		case !denied(err):
			return err
		case strings.Contains(err.Error(), "channel"):
			missing = append(missing, c.rule)
		default:
			missing = append(missing, "+"+command)
		}
		return nil
	}
	channels := s.channels()
	for _, c := range channels {
		sub := s.rdb.Subscribe(ctx, c.name)
		_, err := sub.Receive(ctx)
		// Nothing was sent on it that could be lost.
		_ = sub.Close()
		if err := note(err, "subscribe", c); err != nil {
			return nil, err
		}
	}
	// A wake-up for no task: the nodes look, and find what they knew.
	err := note(s.rdb.Publish(ctx, channels[0].name, "").Err(), "publish", channels[0])
	slices.Sort(missing)
	return slices.Compact(missing), err
}
