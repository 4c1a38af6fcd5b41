package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
	"github.com/keyfuse-io/keyfuse/registry"
)

func TestClassValueReadsWhatItWrote(t *testing.T) {
	for _, payload := range []string{"", " ", "x", "a b", "\x00\xff\n"} {
		task, got, err := ParseClass(ClassValue("cancel-order", []byte(payload)))
		if err != nil || task != "cancel-order" || string(got) != payload {
			t.Errorf("%q: task %q, payload %q, %v", payload, task, got, err)
		}
	}
}

var classValues = []string{
	"", " ", "mail", "mail ", "mail  x", " mail", "mail\tx", "mail\nx", "mail\x00x x", "com.acme.Job", "a/b:c_d-e.f x", "-mail", "é",
	"ma\xffil", strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 128) + " p", "0", "_", "mail\r",
}

func FuzzParseClass(f *testing.F) {
	for _, value := range classValues {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		task, payload, err := ParseClass(value)
		if err != nil {
			if !errors.Is(err, ErrBadTask) {
				t.Fatalf("%q: %v", value, err)
			}
			return
		}
		if again := ClassValue(task, payload); again != value && again+" " != value {
			t.Fatalf("%q became %q", value, again)
		}
	})
}

// FuzzTaskOf compares the two readers of class values, Go's and the scripts'.
func FuzzTaskOf(f *testing.F) {
	for _, value := range classValues {
		f.Add(value)
	}
	run := taskOf(f)
	f.Fuzz(func(t *testing.T, value string) {
		task, _, _ := ParseClass(value)
		if got := run(t, value); got != task {
			t.Fatalf("%q: the scripts read task %q, Go reads %q", value, got, task)
		}
	})
}

// taskOf calls the scripts' task_of; "" is none.
func taskOf(tb testing.TB) func(tb testing.TB, value string) string {
	tb.Helper()
	server, err := embedded.Start(embedded.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379", Dialer: server.Dial})
	tb.Cleanup(func() { _, _ = rdb.Close(), server.Close() })
	prelude, err := luaFiles.ReadFile("lua/prelude.lua")
	if err != nil {
		tb.Fatal(err)
	}
	script := redis.NewScript(string(prelude) + "return task_of(ARGV[1]) or ''")
	return func(tb testing.TB, value string) string {
		tb.Helper()
		task, err := script.Run(tb.Context(), rdb, []string{"keyfuse:"}, value).Text()
		if err != nil {
			tb.Fatal(err)
		}
		return task
	}
}

func FuzzCheckTask(f *testing.F) {
	for _, name := range classValues {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		ours, theirs := CheckTask(name), registry.CheckName(name)
		if (ours == nil) != (theirs == nil) {
			t.Fatalf("%q: wire says %v, registry says %v", name, ours, theirs)
		}
		if ours == nil && strings.ContainsAny(name, " \x00\n") {
			t.Fatalf("%q passed", name)
		}
	})
}

func FuzzCheckID(f *testing.F) {
	for _, id := range []string{"", "a", "class:a", "keyfuse:a", "class", "keyfuse", "\x00", strings.Repeat("x", 512), strings.Repeat("x", 513), "CLASS:a"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		err := CheckID(id)
		if err != nil && !errors.Is(err, ErrBadID) {
			t.Fatalf("%q: %v", id, err)
		}
		good := id != "" && len(id) <= 512 && !strings.HasPrefix(id, "class:") && !strings.HasPrefix(id, "keyfuse:")
		if (err == nil) != good {
			t.Fatalf("%q: %v", id, err)
		}
		if got, ok := (Names{}).IDOfClass(Names{}.Class(id)); got != id || !ok {
			t.Fatalf("the class key of %q is that of %q", id, got)
		}
	})
}

var records = []string{
	"1 1700000000000 timer index 0 1 0\napayload", "2 1 manual manual 3 2 3\nidwhyrest", "0 0 r s 0 0 0\n", "",
	"1 1 t i 0 9 9\nab", "1 1 t i 0 9223372036854775807 9223372036854775807\nab", "-1 1 t i 0 1 0\na", "1 1 t i 0 1\na",
	"1 1 t i 0 1 0", "x 1 t i 0 1 0\na", "1 1 t i 0 1 0 0\na", "1 99999999999999999999 t i 0 1 0\na",
}

func FuzzParseRecord(f *testing.F) {
	for _, record := range records {
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record string) {
		run, err := parseRecord(record)
		if err != nil {
			if !errors.Is(err, errBadRecord) {
				t.Fatalf("%q: %v", record, err)
			}
			return
		}
		again, err := parseRecord(formatRecord(run))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(run) {
			t.Fatalf("%q: %+v became %+v, %v", record, run, again, err)
		}
		if !strings.HasSuffix(record, run.ID+run.LastError+string(run.Payload)) {
			t.Fatalf("%q: read as %+v", record, run)
		}
	})
}

// formatRecord writes a record as the scripts do.
func formatRecord(r Run) string {
	return fmt.Sprintf("%d %d %s %s %d %d %d\n%s%s%s", r.Attempt, r.Due.UnixMilli(), r.Reason, r.Source, r.Count,
		len(r.ID), len(r.LastError), r.ID, r.LastError, r.Payload)
}

func TestBrokenRecordsAreErrors(t *testing.T) {
	bad := 0
	for _, record := range records {
		if _, err := parseRecord(record); err != nil {
			bad++
		}
	}
	if bad != len(records)-3 {
		t.Errorf("%d of %d are bad, want all but 3", bad, len(records))
	}
}

func TestTimesAreRoundedUpToMilliseconds(t *testing.T) {
	for _, c := range []struct {
		when When
		want string
	}{
		{When{}, "+0"},
		{When{In: 1}, "+1"},
		{When{In: time.Millisecond}, "+1"},
		{When{In: time.Millisecond + 1}, "+2"},
		{When{In: 1<<63 - 1}, "+9223372036855"},
		{When{At: time.UnixMilli(1700000000000)}, "1700000000000"},
		{When{At: time.Unix(1700000000, 1)}, "1700000000001"},
		{When{At: time.Unix(1700000000, 999_999_999)}, "1700000001000"},
		{When{At: time.Unix(0, -1)}, "0"},
		{When{At: time.Unix(-1<<62, 0)}, "0"},
		{When{At: time.Unix(-9223372036854776, 0)}, "0"}, // × 1000 is beyond an int64
	} {
		if got := c.when.arg(); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.when, got, c.want)
		}
	}
}

func TestGlobOfAnyPrefixFindsOnlyIt(t *testing.T) {
	server, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379", Dialer: server.Dial})
	t.Cleanup(func() { _, _ = rdb.Close(), server.Close() })
	prefixes := []string{"a*", "a?", "a[b]", `a\`, "a^", "a-", "[", "\x00"}
	for _, prefix := range prefixes {
		rdb.Set(t.Context(), "class:"+prefix+"1", "", 0)
		rdb.Set(t.Context(), "class:a"+prefix, "", 0)
	}
	for _, prefix := range prefixes {
		keys, err := rdb.Keys(t.Context(), Names{}.ClassPattern(prefix)).Result()
		if err != nil || !slices.Equal(keys, []string{"class:" + prefix + "1"}) {
			t.Errorf("%q: found %q, %v", prefix, keys, err)
		}
	}
}
