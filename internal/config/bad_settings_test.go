package config

var badSettings = []badFile{
	{
		name: "unknown keys",
		file: `redis: {ulr: x, urll: y}
engin: {}
what: 1
web: {listen: ""}
tasks: {a: {list: {key: a, maxlen: 1}}}
`,
		want: `1: redis.ulr: unknown key: want one of addrs, cluster, db, id_prefix, master_name, notifications, password, password_file, sentinel_password, sentinel_password_file, sentinel_username, tls, url, username, wait_replicas, wait_timeout
1: redis.urll: unknown key: did you mean url?
2: engin: unknown key: did you mean engine?
3: what: unknown key: want one of defaults, engine, http, redis, tasks, triggers
4: web: unknown key: want one of defaults, engine, http, redis, tasks, triggers
5: tasks.a.list.maxlen: unknown key: want key
`,
	},
	{
		name: "an address that is none, a token that can be guessed, an unknown key",
		file: `http: {listen: 8787, token: short, port: 1}
`,
		want: `1: http.listen: want text here: put the value in quotes
1: http.token: is shorter than 32 characters: make one with ` + "`openssl rand -hex 32`" + `
1: http.port: unknown key: want one of listen, token, trace
`,
	},
	{
		name: "an address without a port",
		file: `http:
  listen: localhost
`,
		want: "2: http.listen: is not host:port: write it as in 127.0.0.1:8787",
	},
	{
		name: "an address for all, without a token",
		file: `http:
  listen: :8787
`,
		want: "1: http: listen names an address that other machines can reach: set a token beside it, or listen on 127.0.0.1",
	},
	{
		name: "keys twice",
		file: `redis:
  url: embedded
  url: x
tasks:
  a: {log: }
  b: {log: }
  a: {log: }
redis: {}
`,
		want: `3: redis.url: stands here twice, first on line 2: remove one
7: tasks.a: stands here twice, first on line 5: remove one
8: redis: stands here twice, first on line 1: remove one
`,
	},
	{
		name: "sections of another type",
		file: `redis: [1]
engine: 5
defaults: x
tasks: [a]
triggers: {a: b}
`,
		want: `1: redis: want a section of key: value here, not a list
2: engine: want a section of key: value here, not a single value
3: defaults: want a section of key: value here, not a single value
4: tasks: want a section of key: value here, not a list
5: triggers: want a list like [a, b] here, not a section
`,
	},
	{
		name: "a list for a file",
		file: `- a
`,
		want: "1: want a section of key: value here, not a list",
	},
	{
		name: "a word for a file",
		file: `hello
`,
		want: "1: want a section of key: value here, not a single value",
	},
	{
		name: "no number, too short, no unit, too large",
		file: `engine:
  concurrency: many
  lease: 500ms
  shutdown_grace: 10
  max_payload: 2GiB
`,
		want: `2: engine.concurrency: "many" is not a whole number from 1 to 100000
3: engine.lease: "500ms" is too short: want 1s or more
4: engine.shutdown_grace: "10" has no unit: write 10s
5: engine.max_payload: "2GiB" is out of range: want 1 to 512MiB
`,
	},
	{
		name: "too small, nothing, negative, no size",
		file: `engine:
  concurrency: 0
  lease:
  shutdown_grace: -5s
  max_payload: lots
`,
		want: `2: engine.concurrency: "0" is not a whole number from 1 to 100000
3: engine.lease: is empty: give it a value, or remove the line
4: engine.shutdown_grace: "-5s" is negative: want 0s or more
5: engine.max_payload: "lots" is not a size: write it in bytes, or like 64KiB or 1MiB
`,
	},
	{
		name: "a list, a section, half a unit, negative",
		file: `engine:
  concurrency: [1]
  lease: {a: b}
  shutdown_grace: 1h30
  max_payload: -1
`,
		want: `2: engine.concurrency: want a single value here, not a list
3: engine.lease: want a single value here, not a section
4: engine.shutdown_grace: "1h30" ends without a unit: write 1h30m or 1h30s, say
5: engine.max_payload: "-1" is out of range: want 1 to 512MiB
`,
	},
	{
		name: "a huge number, an unknown unit, too long, zero",
		file: `engine: {concurrency: 99999999999999999999, lease: 11y, shutdown_grace: 4000d, max_payload: 0}
`,
		want: `1: engine.concurrency: "99999999999999999999" is not a whole number from 1 to 100000
1: engine.lease: "11y" has an unknown unit, y: want ms, s, m, h, d or w
1: engine.shutdown_grace: "4000d" is longer than 10 years: want 3650d or less
1: engine.max_payload: "0" is out of range: want 1 to 512MiB
`,
	},
	{
		name: "a URL of another scheme, a number for text, an unknown word",
		file: `redis: {url: http://user:hunter2@h, id_prefix: 5, notifications: sometimes}
`,
		want: `1: redis.url: is neither embedded nor a URL that begins with redis://, rediss:// or unix://
1: redis.id_prefix: want text here: put the value in quotes
1: redis.notifications: "sometimes" is not one of auto, require, off
`,
	},
	{
		name: "a URL that is none, a reserved prefix",
		file: `redis: {url: 'redis://u:hunter2 w%zz@h', id_prefix: 'class:x', notifications: on}
`,
		want: `1: redis.url: is not a URL: in its user name and password, write special characters as %XX
1: redis.id_prefix: begins with class: or keyfuse:, which are Keyfuse's own: choose another
1: redis.notifications: "on" is not one of auto, require, off
`,
	},
	{
		name: "a database without a number, an empty word",
		file: `redis: {url: 'redis://h/x', id_prefix: 'keyfuse:', notifications: }
`,
		want: `1: redis.url: has no number of a database behind the host: write it as in redis://127.0.0.1:6379/0
1: redis.id_prefix: begins with class: or keyfuse:, which are Keyfuse's own: choose another
1: redis.notifications: is empty: give it a value, or remove the line
`,
	},
	{
		name: "no socket, no addresses, no words",
		file: `redis: {url: 'unix:', addrs: [a, 'b:0', ':6379', 'c:99999', 'd:x', 5], master_name: '', cluster: yes}
`,
		want: `1: redis.url: names no socket: write it as in unix:///run/redis/redis.sock
1: redis.addrs[0]: is not host:port: write it as in 10.0.0.1:6379
1: redis.addrs[1]: is not host:port: write it as in 10.0.0.1:6379
1: redis.addrs[2]: is not host:port: write it as in 10.0.0.1:6379
1: redis.addrs[3]: is not host:port: write it as in 10.0.0.1:6379
1: redis.addrs[4]: is not host:port: write it as in 10.0.0.1:6379
1: redis.addrs[5]: want text here: put the value in quotes
1: redis.master_name: is empty: give it a value, or remove the line
1: redis.cluster: "yes" is not true or false
1: redis.addrs: stands beside url: keep one of them
`,
	},
	{
		name: "an empty URL",
		file: `redis: {url: ''}
`,
		want: "1: redis.url: is neither embedded nor a URL that begins with redis://, rediss:// or unix://",
	},
	{
		name: "defaults",
		file: `defaults:
  timeout: 10
  retries:
    max: -1
    initial: 0s
    max_delay: 1x
    jitter: 1.5
`,
		want: `2: defaults.timeout: "10" has no unit: write 10s
4: defaults.retries.max: "-1" is not a whole number from 0 to 1000000
5: defaults.retries.initial: "0s" is too short: want 1ms or more
6: defaults.retries.max_delay: "1x" has an unknown unit, x: want ms, s, m, h, d or w
7: defaults.retries.jitter: "1.5" is not a number from 0 to 1
`,
	},
	{
		name: "jitters that are no share",
		file: `defaults: {retries: {jitter: .nan}}
tasks:
  a: {log: , retries: {jitter: -0.1}}
  b: {log: , retries: {jitter: NaN}}
`,
		want: `1: defaults.retries.jitter: ".nan" is not a number from 0 to 1
3: tasks.a.retries.jitter: "-0.1" is not a number from 0 to 1
4: tasks.b.retries.jitter: "NaN" is not a number from 0 to 1
`,
	},
	{
		name: "a first wait above the longest",
		file: `defaults:
  retries:
    max_delay: 500ms
tasks:
  a:
    log: {}
    retries: {initial: 2h}
`,
		want: `2: defaults.retries: initial (1s) is longer than max_delay (500ms): change one of them
7: tasks.a.retries: initial (2h) is longer than max_delay (500ms): change one of them
`,
	},
	{
		name: "a first wait above the longest by default",
		file: `defaults: {retries: {max_delay: 5s}}
tasks:
  a:
    log: {}
    retries: {initial: 10s}
`,
		want: "5: tasks.a.retries: initial (10s) is longer than max_delay (5s): change one of them",
	},
}
