package config

var badTasks = []badFile{
	{
		name: "no kind of task or two",
		file: `tasks:
  a: {}
  b:
  c: {log: {}, exec: {command: [x]}}
  d: {htpp: {}}
  e: 5
  f: {timeout: 1x}
`,
		want: `2: tasks.a: does not say what to do: add one of http, exec, stream, list, publish, log
3: tasks.b: does not say what to do: add one of http, exec, stream, list, publish, log
4: tasks.c: has 2 kinds, exec and log: keep one
5: tasks.d.htpp: unknown key: did you mean http?
6: tasks.e: want a section of key: value here, not a single value
7: tasks.f.timeout: "1x" has an unknown unit, x: want ms, s, m, h, d or w
7: tasks.f: does not say what to do: add one of http, exec, stream, list, publish, log
`,
	},
	{
		name: "names of tasks",
		file: `tasks:
  bad name: {log: }
  "": {log: }
  5: {log: }
  ? [x]
  : {log: }
  "\n-": {log: }
  yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy: {log: }
`,
		want: `2: tasks."bad name": is not a task name: want 1 to 128 letters, digits and . _ : / - that begin with a letter or digit
3: tasks."": is not a task name: want 1 to 128 letters, digits and . _ : / - that begin with a letter or digit
4: tasks: a key here is not text: put it in quotes
5: tasks: a key here is not text: put it in quotes
7: tasks."\n-": is not a task name: want 1 to 128 letters, digits and . _ : / - that begin with a letter or digit
8: tasks."yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"…: is not a task name: want 1 to 128 letters, digits and . _ : / - that begin with a letter or digit
`,
	},
	{
		name: "options of a task",
		file: `tasks:
  a:
    log: {level: loud}
    timeout: 10
    concurrency: -1
    delivery: exactly-once
    retries: 5
`,
		want: `3: tasks.a.log.level: "loud" is not one of debug, info, warn, error
4: tasks.a.timeout: "10" has no unit: write 10s
5: tasks.a.concurrency: "-1" is not a whole number from 0 to 100000
6: tasks.a.delivery: "exactly-once" is not one of at-least-once, at-most-once
7: tasks.a.retries: want a section of key: value here, not a single value
`,
	},
	{
		name: "http tasks",
		file: `tasks:
  a: {http: {}}
  b:
    http:
      url: ftp://x
      method: post
      secret: ''
      headers:
        a b: c
        X: "a\nb"
        x-y: 1
        X-Y: z
  c: {http: {url: 'http://:80'}}
  d: {http: {url: 'http://u:hunter2%zz@h'}}
  e: {http: }
  f: {http: x}
`,
		want: `2: tasks.a.http: has no url: add one
5: tasks.b.http.url: is not a URL that begins with http:// or https://
6: tasks.b.http.method: "post" is not one of POST, PUT, PATCH, DELETE, GET
7: tasks.b.http.secret: is empty: give it a value, or remove the line
9: tasks.b.http.headers."a b": is not a name for a header: want letters, digits and -
10: tasks.b.http.headers.X: holds a line break or zero byte, which no header can carry: remove it
11: tasks.b.http.headers.x-y: want text here: put the value in quotes
12: tasks.b.http.headers.X-Y: names the same header as a key above: remove one
13: tasks.c.http.url: names no host: write it as in http://127.0.0.1:9000/path
14: tasks.d.http.url: is not a URL: in its user name and password, write special characters as %XX
15: tasks.e.http: has no url: add one
16: tasks.f.http: want a section of key: value here, not a single value
`,
	},
	{
		name: "exec tasks",
		file: `tasks:
  a: {exec: {}}
  b: {exec: {command: []}}
  c: {exec: {command: ./x.sh}}
  d:
    exec:
      command: [a, 5,
        "\0"]
      dir: "\0"
      env:
        A=B: c
        A: "\0"
        B: 1
  e: {exec: {command: ['']}}
`,
		want: `2: tasks.a.exec: has no command: add one
3: tasks.b.exec.command: names no program: want a list of the program and its arguments
4: tasks.c.exec.command: want a list like [a, b] here, not a single value
7: tasks.d.exec.command[1]: want text here: put the value in quotes
8: tasks.d.exec.command[2]: holds a zero byte, which no program can be given: remove it
9: tasks.d.exec.dir: holds a zero byte, which no program can be given: remove it
11: tasks.d.exec.env."A=B": is not a name for an environment variable: it must not be empty nor hold = or a zero byte
12: tasks.d.exec.env.A: holds a zero byte, which no program can be given: remove it
13: tasks.d.exec.env.B: want text here: put the value in quotes
14: tasks.e.exec.command: names no program: want a list of the program and its arguments
`,
	},
	{
		name: "tasks that write to Redis",
		file: `tasks:
  a: {stream: {maxlen: -1}}
  b: {stream: {key: 'keyfuse:x', maxlen: 1.5}}
  c: {list: {}}
  d: {list: {key: ''}}
  e: {publish: {}}
  f: {publish: {channel: 7}}
`,
		want: `2: tasks.a.stream.maxlen: "-1" is not a whole number from 0 to 1000000000000
2: tasks.a.stream: has no key: add one
3: tasks.b.stream.key: begins with class: or keyfuse:, which are Keyfuse's own: choose another
3: tasks.b.stream.maxlen: "1.5" is not a whole number from 0 to 1000000000000
4: tasks.c.list: has no key: add one
5: tasks.d.list.key: is empty: give it a value, or remove the line
6: tasks.e.publish: has no channel: add one
7: tasks.f.publish.channel: want text here: put the value in quotes
`,
	},
	{
		name: "triggers",
		file: `tasks: {note: {log: }}
triggers:
  - {id: a, task: nota, in: 1s}
  - {id: a, task: note, in: 1s}
  - {id: b, task: unknown, in: 10}
  - {}
  -
  - x
  - {id: c, task: note}
  - {id: d, task: note, in: 1s, at: tomorrow}
  - {id: e, task: note, in: 1s, timezone: UTC}
  - {id: f, task: note, at: 2026-12-01 09:00, timezone: Mars}
`,
		want: `3: triggers[0].task: "nota" is not defined under tasks: did you mean note?
4: triggers[1]: has the id of the trigger on line 3: change one of them
5: triggers[2].task: "unknown" is not defined under tasks: define it there
5: triggers[2].in: "10" has no unit: write 10s
6: triggers[3]: has no id: add one
6: triggers[3]: has no task: add one
7: triggers[4]: has no id: add one
7: triggers[4]: has no task: add one
8: triggers[5]: want a section of key: value here, not a single value
9: triggers[6]: does not say when: add in, at or threshold
10: triggers[7]: has both in and at: keep one
10: triggers[7].at: "tomorrow" is not a time: write 2026-12-01T09:00:00Z, or 2026-12-01 09:00 for a time on the local clocks
11: triggers[8].timezone: goes only with at: remove it
12: triggers[9].timezone: "Mars" is not a time zone that this machine knows: write one like Europe/Berlin
`,
	},
	{
		name: "triggers of later versions",
		file: `tasks: {note: {log: }}
triggers:
  - {id: g, task: note, cron: '0 2 * * *'}
  - {id: i, task: note, every: 1s}
  - {id: j, task: note, in: 1s, cron: x}
`,
		want: `3: triggers[0].cron: recurring triggers are not supported in this version yet: remove it
4: triggers[1].every: recurring triggers are not supported in this version yet: remove it
5: triggers[2].cron: recurring triggers are not supported in this version yet: remove it
5: triggers[2]: has both in and cron: keep one
`,
	},
	{
		name: "thresholds",
		file: `tasks: {note: {log: }}
triggers:
  - {id: a, task: note, threshold: {}}
  - {id: b, task: note, threshold: }
  - {id: c, task: note, threshold: 100}
  - {id: d, task: note, threshold: {cuont: 1, within: 1m}}
  - {id: e, task: note, threshold: {count: 1, within: 1m}, in: 1s}
  - {id: f, task: note, threshold: {count: 1, within: 1m}, timezone: UTC}
  - id: g
    task: note
    threshold:
      count: 0
      within: 0s
      on_timeout: retry
      mode: twice
      debounce: -1s
      max_wait: 11y
      max_items: 10001
      max_bytes: 2GiB
  - id: h
    task: note
    threshold:
      count: 9007199254740992
      within: 10
      on_timeout: true
      mode:
      debounce: 0.5ms
      max_wait: 3651d
      max_items: 0
      max_bytes: 1048577
  - id: i
    task: note
    threshold:
      count: 1.5
      within: [1m]
      max_items: many
      max_bytes: 0
`,
		want: `3: triggers[0].threshold: has no count: add one
3: triggers[0].threshold: has no within: add one
4: triggers[1].threshold: has no count: add one
4: triggers[1].threshold: has no within: add one
5: triggers[2].threshold: want a section of key: value here, not a single value
6: triggers[3].threshold.cuont: unknown key: want one of count, debounce, max_bytes, max_items, max_wait, mode, on_timeout, within
6: triggers[3].threshold: has no count: add one
7: triggers[4]: has both in and threshold: keep one
8: triggers[5].timezone: goes only with at: remove it
12: triggers[6].threshold.count: "0" is not a whole number from 1 to 9007199254740991
13: triggers[6].threshold.within: "0s" is too short: want 1ms or more
14: triggers[6].threshold.on_timeout: "retry" is not one of fire, drop
15: triggers[6].threshold.mode: "twice" is not one of repeat, once
16: triggers[6].threshold.debounce: "-1s" is negative: want 0s or more
17: triggers[6].threshold.max_wait: "11y" has an unknown unit, y: want ms, s, m, h, d or w
18: triggers[6].threshold.max_items: "10001" is not a whole number from 1 to 10000
19: triggers[6].threshold.max_bytes: "2GiB" is out of range: want 1 to 1MiB
23: triggers[7].threshold.count: "9007199254740992" is not a whole number from 1 to 9007199254740991
24: triggers[7].threshold.within: "10" has no unit: write 10s
25: triggers[7].threshold.on_timeout: "true" is not one of fire, drop
26: triggers[7].threshold.mode: is empty: give it a value, or remove the line
27: triggers[7].threshold.debounce: "0.5ms" is too short: want 1ms or more
28: triggers[7].threshold.max_wait: "3651d" is longer than 10 years: want 3650d or less
29: triggers[7].threshold.max_items: "0" is not a whole number from 1 to 10000
30: triggers[7].threshold.max_bytes: "1048577" is out of range: want 1 to 1MiB
34: triggers[8].threshold.count: "1.5" is not a whole number from 1 to 9007199254740991
35: triggers[8].threshold.within: want a single value here, not a list
36: triggers[8].threshold.max_items: "many" is not a whole number from 1 to 10000
37: triggers[8].threshold.max_bytes: "0" is out of range: want 1 to 1MiB
`,
	},
	{
		name: "debounces and small payloads",
		file: `engine: {max_payload: 1000}
tasks: {note: {log: }}
triggers:
  - {id: a, task: note, threshold: {count: 1, within: 1m, max_wait: 1m}}
  - {id: b, task: note, threshold: {count: 1, within: 1m, debounce: 10s, max_wait: 9999ms}}
  - {id: c, task: note, threshold: {count: 1, within: 1m, debounce: 61s}}
  - {id: d, task: note, threshold: {count: 1, debounce: 61s}}
  - {id: e, task: note, threshold: {count: 1, within: 1m, debounce: 61s, max_wait: 5}}
  - {id: f, task: note, threshold: {count: 1, within: 1m, max_bytes: 1KiB}}
  - {id: g, task: note, threshold: {count: 1, within: 1m, debonce: 61s, max_wait: 1s}}
`,
		want: `4: triggers[0].threshold.max_wait: goes only with debounce: remove it
5: triggers[1].threshold.max_wait: is shorter than debounce: change one of them
6: triggers[2].threshold.debounce: is longer than within: change one of them, or add max_wait
7: triggers[3].threshold: has no within: add one
8: triggers[4].threshold.max_wait: "5" has no unit: write 5s
9: triggers[5].threshold.max_bytes: "1KiB" is out of range: want 1 to engine.max_payload
10: triggers[6].threshold.debonce: unknown key: did you mean debounce?
`,
	},
	{
		name: "patterns",
		file: `tasks: {note: {log: }}
triggers:
  - {id: '*', task: note, threshold: {count: 1, within: 1m}}
  - {id: '*:a', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'a*b*', task: note, threshold: {count: x, within: 1m}}
  - {id: 'a**', task: note, threshold: }
  - {id: 'b:*:in', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'b:*:out', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'b:', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'b*', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'b:*ly:out', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'b:*n', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'b:*', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'b:*', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'b:*t', task: note, in: 1s}
  - {id: '*', task: note, in: 1s}
  - {id: 'b*', task: note, in: 1s}
  - {id: 'c*', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'key*:a', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'class:*', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'keyfuse:a*', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'cl:*', task: note, threshold: {count: 1, within: 1m}}
  - {id: 'keyfuses*', task: note, threshold: {count: 1, within: 1m}}
  - {id: c, task: note, threshold: {count: 1, within: 1m}}
  - {id: 'k*', task: note, in: 1s}
`,
		want: `3: triggers[0].id: begins with *, so any id would match it: put text before the *
4: triggers[1].id: begins with *, so any id would match it: put text before the *
5: triggers[2].threshold.count: "x" is not a whole number from 1 to 9007199254740991
5: triggers[2].id: holds more than one *, which stands for any bytes: keep one
6: triggers[3].threshold: has no count: add one
6: triggers[3].threshold: has no within: add one
6: triggers[3].id: holds more than one *, which stands for any bytes: keep one
11: triggers[8]: matches some ids as closely as the trigger on line 8: change the text before or after the * in one of them
12: triggers[9]: matches some ids as closely as the trigger on line 7: change the text before or after the * in one of them
13: triggers[10]: matches some ids as closely as the trigger on line 7: change the text before or after the * in one of them
14: triggers[11]: has the id of the trigger on line 13: change one of them
17: triggers[14]: has the id of the trigger on line 10: change one of them
18: triggers[15].id: would match Keyfuse's own keys: put more text before the *
19: triggers[16].id: would match Keyfuse's own keys: put more text before the *
20: triggers[17].id: begins with class: or keyfuse:, which are Keyfuse's own: choose another
21: triggers[18].id: begins with class: or keyfuse:, which are Keyfuse's own: choose another
`,
	},
	{
		name: "ids and payloads",
		file: `redis: {id_prefix: 'app:'}
engine: {max_payload: 4}
tasks: {note: {log: }}
triggers:
  - {id: '', task: note, in: 1s}
  - {id: 'class:x', task: note, in: 1s}
  - {id: 'keyfuse:x', task: note, in: 1s}
  - {id: x, task: note, in: 1s}
  - {id: 'app:x', task: note, in: 1s, payload: hello}
  - {id: 'app:y', task: note, in: 1s, payload: 5}
  - {id: 'app:z', task: note, in: 1s, payload: }
  - {id: 'app:w', task: note, on: 1s}
`,
		want: `5: triggers[0].id: has 0 bytes: an id has 1 to 512
6: triggers[1].id: begins with class: or keyfuse:, which are Keyfuse's own: choose another
7: triggers[2].id: begins with class: or keyfuse:, which are Keyfuse's own: choose another
8: triggers[3].id: does not begin with redis.id_prefix, so it would never run: add the prefix
9: triggers[4].payload: has 5 bytes, more than engine.max_payload (4): shorten it
10: triggers[5].payload: want text here: put the value in quotes
11: triggers[6].payload: is empty: give it a value, or remove the line
12: triggers[7].on: unknown key: want one of at, cron, every, id, in, payload, task, threshold, timezone
`,
	},
}
