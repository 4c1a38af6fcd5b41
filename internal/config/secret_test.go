package config

import (
	"strings"
	"testing"
)

func TestWhatComesFromTheEnvironmentIsNeverShown(t *testing.T) {
	const secret = "hunter2"
	file := `redis: {url: "redis://u:${S} @h", id_prefix: "class:${S}", notifications: "${S}", addrs: ["${S}"], cluster: "${S}", db: "${S}", wait_timeout: "${S}"}
engine: {concurrency: "${S}", lease: "${S}", max_payload: "${S}"}
defaults: {timeout: "1${S}", retries: {jitter: "${S}"}}
tasks:
  a:
    http: {url: "${S}", method: "${S}", headers: {X: "${S}\n"}}
  b: {log: {level: "${S}"}}
triggers:
  - {id: "class:${S}", task: "${S}", at: "${S}", timezone: "${S}"}
  - id: "*${S}"
    task: a
    payload: "${S}"
    threshold:
      {count: "${S}", within: "${S}", on_timeout: "${S}", mode: "${S}", debounce: "${S}", max_wait: "${S}", max_items: "${S}", max_bytes: "${S}"}
http: {listen: "${S}", token: "${S}"}
`
	want := []string{
		"1: redis.url: is not a URL: in its user name and password, write special characters as %XX",
		"1: redis.id_prefix: begins with class: or keyfuse:, which are Keyfuse's own: choose another",
		"1: redis.notifications: the value from the environment is not one of auto, require, off",
		"1: redis.addrs[0]: is not host:port: write it as in 10.0.0.1:6379",
		"1: redis.cluster: the value from the environment is not true or false",
		"1: redis.db: the value from the environment is not a whole number from 0 to 2147483647",
		"1: redis.wait_timeout: the value from the environment is not a duration from 1ms to 4s, like 500ms",
		"1: redis.addrs: stands beside url: keep one of them",
		"1: redis.addrs: needs master_name if these are sentinels, or cluster: true if they are nodes; a single Redis has a url",
		"2: engine.concurrency: the value from the environment is not a whole number from 1 to 100000",
		"2: engine.lease: the value from the environment is not a duration of 1s or more, like 90s or 30m",
		"2: engine.max_payload: the value from the environment is not a size from 1 to 512MiB, like 64KiB",
		"3: defaults.timeout: the value from the environment is not a duration of 0s or more, like 90s or 30m",
		"3: defaults.retries.jitter: the value from the environment is not a number from 0 to 1",
		"6: tasks.a.http.url: is not a URL that begins with http:// or https://",
		"6: tasks.a.http.method: the value from the environment is not one of POST, PUT, PATCH, DELETE, GET",
		"6: tasks.a.http.headers.X: holds a line break or zero byte, which no header can carry: remove it",
		"7: tasks.b.log.level: the value from the environment is not one of debug, info, warn, error",
		"9: triggers[0].id: begins with class: or keyfuse:, which are Keyfuse's own: choose another",
		"9: triggers[0].task: the value from the environment is not defined under tasks: define it there",
		"9: triggers[0].timezone: the value from the environment is not a time zone like Europe/Berlin",
		"9: triggers[0].at: the value from the environment is not a time like 2026-12-01T09:00:00Z",
		"10: triggers[1].id: begins with *, so any id would match it: put text before the *",
		"14: triggers[1].threshold.count: the value from the environment is not a whole number from 1 to 9007199254740991",
		"14: triggers[1].threshold.within: the value from the environment is not a duration of 1ms or more, like 90s or 30m",
		"14: triggers[1].threshold.on_timeout: the value from the environment is not one of fire, drop",
		"14: triggers[1].threshold.mode: the value from the environment is not one of repeat, once",
		"14: triggers[1].threshold.debounce: the value from the environment is not a duration of 1ms or more, like 90s or 30m",
		"14: triggers[1].threshold.max_wait: the value from the environment is not a duration of 1ms or more, like 90s or 30m",
		"14: triggers[1].threshold.max_items: the value from the environment is not a whole number from 1 to 10000",
		"14: triggers[1].threshold.max_bytes: the value from the environment is not a size from 1 to 1MiB, like 64KiB",
		"15: http.listen: is not host:port: write it as in 127.0.0.1:8787",
		"15: http.token: is shorter than 32 characters: make one with `openssl rand -hex 32`",
	}
	_, err := Parse("f", []byte(file), environment(map[string]string{"S": secret}))
	if want := "f:" + strings.Join(want, "\nf:"); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestAVariableCannotAddKeys(t *testing.T) {
	env := environment(map[string]string{"S": "x}\nengine: {concurrency: 7}\n#", "P": "${S}"})
	got, err := Parse("f", []byte("redis: {id_prefix: \"${S}\"}\ntasks: {a: {list: {key: \"${P}\"}}}\n"), env)
	if err != nil {
		t.Fatal(err)
	}
	if got.Redis.IDPrefix != "x}\nengine: {concurrency: 7}\n#" || got.Engine != Default().Engine {
		t.Errorf("got %+v", got)
	}
	if list := got.Tasks[0].Kind.(ListTask); list.Key != "${S}" {
		t.Errorf("a variable's value was expanded again: %q", list.Key)
	}
}

func TestReferencesAreReplacedInText(t *testing.T) {
	env := environment(map[string]string{"A": "1", "_b2": "2", "EMPTY": ""})
	for in, want := range map[string]string{
		"${A}": "1", "a${A}b${_b2}c": "a1b2c", "${A:-x}": "1", "${NONE:-x}": "x", "${EMPTY:-x}": "x", "${NONE:-}": "",
		"${EMPTY}": "", "$${A}": "${A}", "$$${A}": "$${A}", "$${${A}": "${1", "$A $ {A} $": "$A $ {A} $", "${NONE:-a:-b}": "a:-b",
	} {
		got, err := Parse("f", []byte("redis: {id_prefix: \"x"+in+"\"}\n"), env)
		if err != nil || got.Redis.IDPrefix != "x"+want {
			t.Errorf("%s: got %q, %v, want %q", in, got.Redis.IDPrefix, err, want)
		}
	}
}
