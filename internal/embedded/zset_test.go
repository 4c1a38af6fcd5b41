//go:build unix

package embedded_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

var (
	anyScore  = rapid.SampledFrom([]string{"0", "1", "2", "3", "-1", "2.5", "1e15", "1700000000123", "inf", "-inf"})
	anyMember = rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "aa", ""}), rapid.StringN(0, 3, 6))
	anyKey    = rapid.SampledFrom([]string{"z", "y"})
	anyRank   = rapid.Map(rapid.IntRange(-8, 8), strconv.Itoa)
)

func anyScoreBound(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "("}).Draw(t, "open") + anyScore.Draw(t, "bound")
}

// anyZsetCommand draws a command whose reply has one order.
func anyZsetCommand(t *rapid.T) []string {
	key := anyKey.Draw(t, "key")
	member, score := anyMember.Draw(t, "member"), anyScore.Draw(t, "score")
	low, high := anyScoreBound(t), anyScoreBound(t)
	first, last := anyRank.Draw(t, "first"), anyRank.Draw(t, "last")
	option := rapid.SampledFrom([]string{"NX", "XX", "GT", "LT", "CH", "INCR"}).Draw(t, "option")
	return rapid.SampledFrom([][]string{
		{"ZADD", key, score, member},
		{"ZADD", key, option, score, member},
		{"ZADD", key, "XX", option, score, member},
		{"ZADD", key, "CH", score, member, "1", "a", score, "b"},
		{"ZINCRBY", key, score, member},
		{"ZREM", key, member, "a"},
		{"ZREMRANGEBYRANK", key, first, last},
		{"ZREMRANGEBYSCORE", key, low, high},
		{"ZPOPMIN", key, strings.TrimPrefix(first, "-")},
		{"ZPOPMAX", key},
		{"ZSCORE", key, member},
		{"ZMSCORE", key, member, "a"},
		{"ZRANK", key, member},
		{"ZREVRANK", key, member},
		{"ZCARD", key},
		{"ZCOUNT", key, low, high},
		{"ZRANGE", key, first, last, "WITHSCORES"},
		{"ZREVRANGE", key, first, last},
		{"ZRANGE", key, first, last, "REV", "WITHSCORES"},
		{"ZRANGE", key, low, high, "BYSCORE", "LIMIT", first, last},
		{"ZRANGE", key, high, low, "BYSCORE", "REV", "LIMIT", first, last, "WITHSCORES"},
		{"ZRANGEBYSCORE", key, low, high, "WITHSCORES"},
		{"DEL", key},
		{"RENAME", "z", "y"},
		{"COPY", "y", "z", "REPLACE"},
		{"ZUNIONSTORE", "z", "2", "z", "y"},
		{"TYPE", key},
	}).Draw(t, "command")
}

func anyWay(t *rapid.T, command []string) []string {
	if rapid.Bool().Draw(t, "in a script") {
		return append([]string{"EVAL", "return redis.pcall(unpack(ARGV))", "0"}, command...)
	}
	return command
}

func TestSortedSetsAnswerAsARealRedis(t *testing.T) {
	theirs := connect(t, redistest.Start(t).Addr())
	ours := dial(t, start(t, embedded.Config{Logger: testLogger(t)}))
	rapid.Check(t, func(t *rapid.T) {
		clean(ours)
		clean(theirs)
		for range rapid.IntRange(1, 40).Draw(t, "commands") {
			command := anyWay(t, anyZsetCommand(t))
			if got, want := ours.do(command...), theirs.do(command...); got != want {
				t.Fatalf("%q\n ours: %s\nredis: %s", command, got, want)
			}
		}
	})
}

func TestMirrorHoldsWhatTheEngineHolds(t *testing.T) {
	s := start(t, embedded.Config{Logger: testLogger(t)})
	w := dial(t, s)
	rapid.Check(t, func(t *rapid.T) {
		w.do("FLUSHALL")
		for range rapid.IntRange(1, 40).Draw(t, "commands") {
			w.do(anyWay(t, anyZsetCommand(t))...)
			for _, key := range []string{"z", "y"} {
				mirrored := w.do("ZRANGE", key, "0", "-1", "WITHSCORES")
				s.DropMirrors()
				if rebuilt := w.do("ZRANGE", key, "0", "-1", "WITHSCORES"); mirrored != rebuilt {
					t.Fatalf("%s\nmirror: %s\nengine: %s", key, mirrored, rebuilt)
				}
			}
		}
	})
}

func TestLexRangesOfEqualScoresAnswerAsARealRedis(t *testing.T) {
	theirs := connect(t, redistest.Start(t).Addr())
	ours := dial(t, start(t, embedded.Config{}))
	anyBound := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"-", "+", "[" + anyMember.Draw(t, "m"), "(" + anyMember.Draw(t, "m")}).Draw(t, "bound")
	})
	rapid.Check(t, func(t *rapid.T) {
		clean(ours)
		clean(theirs)
		add := []string{"ZADD", "z"}
		for _, member := range rapid.SliceOfN(anyMember, 1, 20).Draw(t, "members") {
			add = append(add, "0", member)
		}
		low, high := anyBound.Draw(t, "low"), anyBound.Draw(t, "high")
		offset, count := anyRank.Draw(t, "offset"), anyRank.Draw(t, "count")
		for _, command := range [][]string{
			add,
			{"ZRANGEBYLEX", "z", low, high},
			{"ZREVRANGEBYLEX", "z", high, low, "LIMIT", offset, count},
			{"ZRANGE", "z", low, high, "BYLEX", "LIMIT", offset, count},
			{"ZLEXCOUNT", "z", low, high},
			{"ZREMRANGEBYLEX", "z", low, high},
			{"ZRANGE", "z", "0", "-1"},
		} {
			if got, want := ours.do(command...), theirs.do(command...); got != want {
				t.Fatalf("%q\n ours: %s\nredis: %s", command, got, want)
			}
		}
	})
}

func TestZscanFindsEveryMemberThatStays(t *testing.T) {
	w := dial(t, start(t, embedded.Config{}))
	const n = 1000
	for i := range n {
		w.do("ZADD", "z", fmt.Sprint(i), fmt.Sprintf("stay:%d", i), fmt.Sprint(i), fmt.Sprintf("go:%d", i))
	}
	var found []string
	cursor, round := "0", 0
	for {
		head, items, _ := strings.Cut(w.do("ZSCAN", "z", cursor, "COUNT", "50", "MATCH", "stay:*"), " ")
		for i, item := range strings.Fields(strings.Trim(items, "[]")) {
			if i%2 == 0 {
				found = append(found, item)
			}
		}
		// What came first leaves, and the scores of what stays change.
		w.do("ZREM", "z", fmt.Sprintf("go:%d", round), fmt.Sprintf("go:%d", n-1-round))
		w.do("ZADD", "z", "-5", fmt.Sprintf("stay:%d", n-1-round))
		round++
		if cursor = strings.TrimPrefix(head, "[$"); cursor == "0" {
			break
		}
	}
	slices.Sort(found)
	if found = slices.Compact(found); len(found) != n {
		t.Errorf("found %d of %d members", len(found), n)
	}
	if round < 20 {
		t.Errorf("%d pages, want about 40", round)
	}
}

func TestBlockingPopsSeeAndChangeSortedSets(t *testing.T) {
	s := start(t, embedded.Config{})
	w, waiter := dial(t, s), dial(t, s)
	w.do("ZADD", "z", "1", "a", "2", "b")
	equal(t, w.do("ZRANGE", "z", "0", "-1"), "[$a $b]", "ZRANGE")
	equal(t, waiter.do("BZPOPMIN", "z", "0"), "[$z $a $1]", "BZPOPMIN")
	equal(t, w.do("ZRANGE", "z", "0", "-1"), "[$b]", "ZRANGE after it")
	equal(t, waiter.do("BZPOPMIN", "z", "0"), "[$z $b $2]", "BZPOPMIN of the last")
	waiter.send("BZPOPMIN", "z", "0")
	w.do("ZADD", "z", "3", "c")
	equal(t, waiter.read(), "[$z $c $3]", "BZPOPMIN that waited")
	equal(t, w.do("ZCARD", "z"), ":0", "ZCARD")
	equal(t, w.do("ZADD", "z", "XX", "1", "c"), ":0", "ZADD XX of what is gone")
}
