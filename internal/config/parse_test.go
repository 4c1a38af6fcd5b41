package config

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

// environment is a lookup in a fixed set of variables.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

var noEnv = environment(nil)

func TestAGoodFileComesOutTyped(t *testing.T) {
	got, err := Load("testdata/good.yaml", environment(map[string]string{"WHO": "ann", "TOKEN": "t0k3n", "RETRIES": "3"}))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Redis:  Redis{URL: "redis://ann:t0k3n@127.0.0.1:6379/2", WaitTimeout: time.Second, IDPrefix: "app:", Notifications: NotificationsOff},
		Engine: Engine{Concurrency: 8, Lease: 20 * time.Second, MaxPayload: 64 << 10},
		HTTP:   HTTP{Listen: ":9000", Token: strings.Repeat("t0k3n", 7), Given: true},
		Tasks: []Task{
			{
				Name: "cancel-order", Line: 24,
				Kind: HTTPTask{
					URL: "https://ann:t0k3n@shop.example/orders", Method: "PUT", Secret: "t0k3n",
					Headers: map[string]string{"X-Literal": "${TOKEN}", "X-Default": "none"},
				},
				Options: registry.Options{
					Timeout: 10 * time.Second, Concurrency: 1000, Delivery: registry.AtMostOnce,
					Retries: registry.Retries{Max: -1, MaxDelay: 90 * time.Minute, Jitter: -1},
				},
			},
			{
				Name: "com.example/Reindex", Line: 34,
				Kind: ExecTask{Command: []string{"./reindex.sh", "--all"}, Dir: "/srv", Env: map[string]string{"MODE": "full"}},
				Options: registry.Options{
					Timeout: -1,
					Retries: registry.Retries{Max: 3, Initial: 2 * time.Second, MaxDelay: 90 * time.Minute, Jitter: 0.5},
				},
			},
			{Name: "to-stream", Line: 38, Kind: StreamTask{Key: "events", MaxLen: 100_000}, Options: goodDefaults},
			{Name: "to-list", Line: 39, Kind: ListTask{Key: "work"}, Options: goodDefaults},
			{Name: "to-channel", Line: 40, Kind: PublishTask{Channel: "events"}, Options: goodDefaults},
			{Name: "quiet", Line: 41, Kind: LogTask{Level: slog.LevelDebug}, Options: goodDefaults},
			{Name: "note", Line: 42, Kind: LogTask{}, Options: goodDefaults},
		},
		Triggers: []Trigger{
			{ID: "app:warm-up", Task: "note", In: 3 * time.Second, Payload: []byte("hello ann")},
			{ID: "app:launch", Task: "com.example/Reindex", At: time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC), Payload: []byte{}},
			{ID: "app:utc", Task: "note", At: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), Payload: []byte{}},
			{ID: "app:users", Task: "note", Payload: []byte{}, Threshold: &Threshold{
				Count: 100, Within: 10 * time.Minute, OnTimeout: "fire", Mode: "repeat", MaxItems: 1000, MaxBytes: 64 << 10,
			}},
			{ID: "app:fail:*:web", Task: "note", Payload: []byte("locked"), Threshold: &Threshold{
				Count: 1<<53 - 1, Within: time.Minute, OnTimeout: "drop", Mode: "once",
				Debounce: 2 * time.Minute, MaxWait: 2 * time.Minute, MaxItems: 10_000, MaxBytes: 4096,
			}},
			{ID: "app:fail:*:app", Task: "note", Payload: []byte{}, Threshold: &Threshold{
				Count: 1, Within: 87600 * time.Hour, OnTimeout: "fire", Mode: "repeat",
				Debounce: 87600 * time.Hour, MaxItems: 1, MaxBytes: 64 << 10,
			}},
			{ID: "app:**", Task: "note", Payload: []byte{}},
		},
	}
	for i := range got.Triggers {
		if at := got.Triggers[i].At; !at.IsZero() {
			got.Triggers[i].At = at.UTC()
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

var goodDefaults = registry.Options{
	Timeout: time.Minute,
	Retries: registry.Retries{Max: 7, MaxDelay: 90 * time.Minute, Jitter: 0.5},
}

func TestAFileThatSaysNothingMeansTheDefaults(t *testing.T) {
	for _, data := range []string{
		"", "\n", "# nothing\n", "---\n", "{}", "\ufeff", "null\n",
		"redis:\nengine:\ndefaults:\ntasks:\ntriggers:\n",
		"redis: {}\nengine: {}\ndefaults: {retries: }\ntasks: {}\ntriggers: []\n",
	} {
		got, err := Parse("config.yaml", []byte(data), noEnv)
		if err != nil || !reflect.DeepEqual(got, Default()) {
			t.Errorf("%q: got %+v, %v", data, got, err)
		}
	}
}

func shipped(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheShippedFileSaysTheDefaultsAndFiresSamplesWithinFiveSeconds(t *testing.T) {
	got, err := Parse("config.yaml", []byte(shipped(t)), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if want := Default(); !reflect.DeepEqual(got.Redis, want.Redis) || got.Engine != want.Engine {
		t.Errorf("got %+v %+v, want the defaults", got.Redis, got.Engine)
	}
	byName := map[string]Task{}
	for _, task := range got.Tasks {
		byName[task.Name] = task
	}
	if _, ok := byName["cancel-order"].Kind.(LogTask); !ok {
		t.Errorf("cancel-order is a %T, want one that is seen in the log", byName["cancel-order"].Kind)
	}
	want := registry.Options{Timeout: registry.DefaultTimeout, Retries: registry.Retries{
		Max: registry.DefaultRetries, Initial: registry.DefaultRetryInitial,
		MaxDelay: registry.DefaultRetryMax, Jitter: registry.DefaultJitter,
	}}
	if options := byName["note"].Options; options != want {
		t.Errorf("defaults are %+v, want %+v", options, want)
	}
	if len(got.Triggers) < 3 {
		t.Errorf("got %d triggers, want 3", len(got.Triggers))
	}
	for _, trigger := range got.Triggers {
		if !strings.HasPrefix(trigger.ID, "sample:") || !trigger.At.IsZero() || trigger.In > 3*time.Second {
			t.Errorf("trigger %+v: want a sample within 3s", trigger)
		}
	}
}

func TestTheShippedFilesExamplesAreValid(t *testing.T) {
	env := environment(map[string]string{"HOOK_SECRET": "x"})
	before, err := Parse("config.yaml", []byte(shipped(t)), env)
	if err != nil {
		t.Fatal(err)
	}
	data := regexp.MustCompile(`(?m)before each line\.\n(  #.*\n)+`).ReplaceAllStringFunc(shipped(t), func(examples string) string {
		return strings.ReplaceAll(strings.ReplaceAll(examples, "\n  # ", "\n  "), "\n  #\n", "\n\n")
	})
	got, err := Parse("examples", []byte(data), env)
	if err != nil || len(got.Tasks)-len(before.Tasks) != 4 || len(got.Triggers)-len(before.Triggers) != 2 {
		t.Errorf("got %d tasks, %d triggers and %v from\n%s", len(got.Tasks), len(got.Triggers), err, data)
	}
}

// knownKeys returns every key that a config file may have, as the errors about
// unknown ones list them.
func knownKeys(t *testing.T) []string {
	t.Helper()
	const unknown = "{qqqqqqqqq: 1}"
	data := "qqqqqqqqq: 1\nredis: {qqqqqqqqq: 1, tls: " + unknown + "}\nengine: " + unknown + "\ndefaults: {qqqqqqqqq: 1, retries: " + unknown + "}\n" +
		"tasks:\n  a: {qqqqqqqqq: 1, http: " + unknown + ", exec: " + unknown + ", stream: " + unknown +
		", list: " + unknown + ", publish: " + unknown + ", log: " + unknown + "}\ntriggers: [{qqqqqqqqq: 1, threshold: " + unknown + "}]\n"
	_, err := Parse("config.yaml", []byte(data), noEnv)
	var keys []string
	lists := regexp.MustCompile(`unknown key: want (?:one of )?(.*)`).FindAllStringSubmatch(err.Error(), -1)
	if len(lists) != 15 {
		t.Fatalf("got %d lists of keys, want 15:\n%v", len(lists), err)
	}
	for _, list := range lists {
		keys = append(keys, strings.Split(list[1], ", ")...)
	}
	return keys
}

func TestTheShippedFileShowsEveryOption(t *testing.T) {
	unsupported := map[string]bool{"cron": true, "every": true}
	file := shipped(t)
	for _, key := range knownKeys(t) {
		shown := regexp.MustCompile(`(?m)(^|[ {])` + key + `([:, ]|$)`).MatchString(file)
		if !shown && !unsupported[key] {
			t.Errorf("option %s is not shown", key)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	if _, err := Load(missing, noEnv); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v, want fs.ErrNotExist and the path", err)
	}
	folder := t.TempDir()
	if _, err := Load(folder, noEnv); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a folder: got %v", err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("redis: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(bad, noEnv)
	list, ok := errors.AsType[Errors](err)
	if !ok || len(list) != 1 || list[0].File != bad || list[0].Line != 1 || list[0].Path != "redis" {
		t.Errorf("got %#v", err)
	}
}

func TestEachErrorOfTheListIsFound(t *testing.T) {
	_, err := Parse("f", []byte("redis: {url: x}\nengine: 5\n"), noEnv)
	first, ok := errors.AsType[Error](err)
	if !ok || first.Line != 1 || first.Path != "redis.url" || !errors.Is(err, err.(Errors)[1]) {
		t.Errorf("got %+v of %v", first, err)
	}
}

func TestIDsHaveAtMost512BytesWithTheirPrefix(t *testing.T) {
	parse := func(prefix, id int) error {
		file := "redis: {id_prefix: " + strings.Repeat("x", prefix) + "}\ntasks: {a: {log: }}\n" +
			"triggers: [{id: " + strings.Repeat("x", id) + ", task: a, in: 1s}]\n"
		_, err := Parse("f", []byte(file), noEnv)
		return err
	}
	if err := parse(511, 512); err != nil {
		t.Errorf("the longest: %v", err)
	}
	want := "f:1: redis.id_prefix: has 512 bytes, which leaves none for the rest of an id: an id has at most 512\n" +
		"f:3: triggers[0].id: has 513 bytes: an id has 1 to 512"
	if err := parse(512, 513); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestAFileThatNeverEndsIsNotReadWhole(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(long, []byte(strings.Repeat("#", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(long, noEnv)
	want := long + ": is longer than 1048576 bytes, the most a config file may have: is it the right file?"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestConnectionAloneIgnoresWhatOnlyTheDaemonNeeds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "redis: {id_prefix: 'a:'}\ntasks:\n  hook: {http: {url: http://127.0.0.1/, secret: \"${SECRET}\"}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	unset := func(string) (string, bool) { return "", false }
	if _, err := Load(path, unset); err == nil {
		t.Error("the daemon starts without a task's secret")
	}
	if cfg, err := LoadConnection(path, unset); err != nil || cfg.Redis.IDPrefix != "a:" || len(cfg.Tasks) != 0 {
		t.Errorf("connection: %+v, %v", cfg, err)
	}
	if err := os.WriteFile(path, []byte("redis: {url: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConnection(path, unset); err == nil {
		t.Error("a wrong connection is taken")
	}
}
