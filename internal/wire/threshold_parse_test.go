package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

func TestDefinitionReadsWhatItWrote(t *testing.T) {
	for _, payload := range []string{"", " ", "a b\nc", "\xff\x00", `"]}`, strings.Repeat("x", 1000)} {
		want, err := Threshold{
			ID: "d*", Task: "a/b", Payload: []byte(payload), Count: MaxCount, Within: 1500 * time.Microsecond, OnTimeout: TimeoutDrops,
			Mode: Once, Debounce: time.Millisecond, MaxWait: time.Hour, MaxItems: 1, MaxBytes: 2,
		}.Complete(time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseThreshold("d*", want.text(), want.payloadText())
		want.Within = 2 * time.Millisecond // never early
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
	}
}

func FuzzParseThreshold(f *testing.F) {
	for _, text := range []string{
		"1 1000 fire repeat 0 0 1000 262144 mail", "3 1 drop once 5 9 1 1 a/b:c", "", "1", "1 1 fire repeat 0 0 1 1 ", "1 1 fire repeat 0 0 1 1",
		"-1 1 fire repeat 0 0 1 1 mail", "1 1 fire repeat 0 0 1 1 mail x", "1 1  fire repeat 0 0 1 mail",
		"1 99999999999999999999 fire repeat 0 0 1 1 mail", "1 9223372036854775807 fire repeat 0 0 1 1 mail",
	} {
		f.Add(text, "")
		f.Add(text, `14 ,"payload":"x"x`)
		f.Add(text, "9223372036854775807 x")
		f.Add(text, "-1 x")
		f.Add(text, "x")
	}
	f.Fuzz(func(t *testing.T, text, payload string) {
		got, err := parseThreshold("c", text, payload)
		if err != nil {
			if !errors.Is(err, ErrBadDefinition) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := parseThreshold("c", got.text(), got.payloadText())
		if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", got) {
			t.Fatalf("%q: %+v became %+v, %v", text, got, again, err)
		}
	})
}

// formatHits writes an answer as hit.lua may.
func formatHits(results []HitResult) string {
	var parts []string
	var need, ends int64 = -1, -1
	for _, r := range results {
		if r.Outcome != CountedIt {
			parts = append(parts, string(r.Outcome))
			continue
		}
		part := fmt.Sprint(r.Count)
		if r.Threshold != need {
			part += fmt.Sprint("/", r.Threshold)
		}
		if r.Fired {
			part += "!"
		}
		if at := r.Ends.UnixMilli(); at != ends {
			part += fmt.Sprint("@", at)
			ends = at
		}
		need = r.Threshold
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func FuzzParseHits(f *testing.F) {
	for _, text := range []string{
		"1/3@1000", "1/3@5 2 3! N 1/4@-7 W -5", "N W O J I B", "1", "", "1/1@1 +1 +2", "+1", "N +1", "1/9@1 +0", "1/9@1 +99999999", "1/9@1 +-1", "1/3@5 ", " ",
		"1!/3@5", "1/3!!@5", "1@2/3", "99999999999999999999/1@1", "1/@1", "1/1@", "1/1@9223372036854775807", "X", "NN", "+1/+2@+3",
	} {
		f.Add(text, 1)
		f.Add(text, 7)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		if n < 0 || n > 2*MaxHits {
			return
		}
		results, err := parseHits(text, n)
		if err != nil {
			if !strings.Contains(err.Error(), "can't be read") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if len(results) == 0 || len(results) > n {
			t.Fatalf("%q: %d results for %d hits", text, len(results), n)
		}
		again, err := parseHits(formatHits(results), n)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(results) {
			t.Fatalf("%q: %+v became %+v, %v", text, results, again, err)
		}
	})
}

func TestAnswersToHitsAreRead(t *testing.T) {
	end := time.UnixMilli(1007)
	got, err := parseHits("1/3@1007 2 N 3! 1/9 +2 -2@995 J", 9)
	want := []HitResult{
		{Count: 1, Threshold: 3, Ends: end},
		{Count: 2, Threshold: 3, Ends: end},
		{Outcome: NoDefinition},
		{Count: 3, Threshold: 3, Fired: true, Ends: end},
		{Count: 1, Threshold: 9, Ends: end},
		{Count: 2, Threshold: 9, Ends: end},
		{Count: 3, Threshold: 9, Ends: end},
		{Count: -2, Threshold: 9, Ends: time.UnixMilli(995)},
		{Outcome: PendingJob},
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func FuzzParseWindow(f *testing.F) {
	for _, record := range []string{
		"2 1 counting 7 4 5 fire mail c", "2 1 fired 0 4 5 drop a/b a b\n \x00", "2 1 counting 7 4 5 fire mail", "2 1 sliding 7 4 5 fire mail ",
		"", "2 1 counting 7 4 x fire mail c", "2 99999999999999999999 counting 7 4 5 fire mail c",
	} {
		f.Add(record, "")
		f.Add(record, "17")
		f.Add(record, "abc")
	}
	f.Fuzz(func(t *testing.T, record, counter string) {
		w, err := parseWindow(record, counter)
		if err != nil {
			if !strings.Contains(err.Error(), "can't be read") {
				t.Fatalf("%q: %v", record, err)
			}
			return
		}
		if !strings.HasSuffix(record, " "+w.Definition) {
			t.Fatalf("%q: definition %q", record, w.Definition)
		}
		state := map[bool]string{true: "fired", false: "counting"}[w.Fired]
		again, err := parseWindow(fmt.Sprintf("%d %d %s 0 %d %d fire task %s", w.End.UnixMilli(), w.Start.UnixMilli(), state, w.Threshold, w.Items, w.Definition), fmt.Sprint(w.Count))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(w) {
			t.Fatalf("%q: %+v became %+v, %v", record, w, again, err)
		}
	})
}

// lua runs a piece of Lua behind window.lua.
func lua(ctx context.Context, rdb *redis.Client, code string, args ...any) (string, error) {
	var script []byte
	for _, file := range []string{"prelude", "run", "window"} {
		text, err := luaFiles.ReadFile("lua/" + file + ".lua")
		if err != nil {
			return "", err
		}
		script = append(script, text...)
	}
	return redis.NewScript(string(script)+code).Run(ctx, rdb, []string{"keyfuse:"}, args...).Text()
}

// onBoth runs a test on the embedded Redis and on a real one.
func onBoth(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Run("embedded", func(t *testing.T) {
		server, err := embedded.Start(embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		rdb := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379", Dialer: server.Dial})
		t.Cleanup(func() { _, _ = rdb.Close(), server.Close() })
		test(t, rdb)
	})
	t.Run("redis", func(t *testing.T) { test(t, redistest.Start(t).Client(t)) })
}

func TestScriptsWriteTimesAsGoDoes(t *testing.T) {
	moments := []time.Time{time.UnixMilli(0), time.UnixMilli(999), time.UnixMilli(1<<43 - 1)}
	for _, year := range []int{1970, 1999, 2000, 2023, 2024, 2026, 2038, 2096, 2100, 2104, 2400} {
		for _, day := range []string{"01-01", "02-28", "03-01", "12-31"} {
			for _, clock := range []string{"00:00:00.000", "12:34:56.789", "23:59:59.999"} {
				at, err := time.Parse("2006-01-02 15:04:05.000", fmt.Sprintf("%04d-%s %s", year, day, clock))
				if err != nil {
					t.Fatal(err)
				}
				moments = append(moments, at, at.Add(24*time.Hour)) // some of these are leap days
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		moments = append(moments, time.UnixMilli(random.Int64N(1<<43)))
	}
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		args, want := make([]any, len(moments)), make([]string, len(moments))
		for i, at := range moments {
			args[i], want[i] = at.UnixMilli(), at.UTC().Format("2006-01-02T15:04:05.000Z")
		}
		text, err := lua(t.Context(), rdb, `
			for i, at in ipairs(ARGV) do ARGV[i] = rfc3339(tonumber(at)) end
			return table.concat(ARGV, ' ')`, args...)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range strings.Fields(text) {
			if got != want[i] {
				t.Errorf("%d ms: got %s, want %s", moments[i].UnixMilli(), got, want[i])
			}
		}
	})
}

func TestScriptsKnowWhatRedisCanIncrement(t *testing.T) {
	values := []string{
		"0", "1", "-1", "17", "9007199254740993", "9223372036854775806", "-9223372036854775807", "1000000000000000000",
		"", "-", "-0", "+1", "01", "00", " 1", "1 ", "1\n", "1.0", "1e3", "abc", "0x1", "9223372036854775808", "10000000000000000000",
		"-9223372036854775809", "99999999999999999999999",
	}
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		for _, value := range values {
			rdb.Set(t.Context(), "c", value, 0)
			want := rdb.IncrBy(t.Context(), "c", 0).Err() == nil
			got, err := lua(t.Context(), rdb, "return is_integer(ARGV[1]) and 'yes' or 'no'", value)
			if err != nil || (got == "yes") != want {
				t.Errorf("%q: the scripts say %s, %v, want %t", value, got, err, want)
			}
		}
	})
}
