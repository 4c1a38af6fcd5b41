package config

var badText = []badFile{
	{
		name: "variables",
		file: `redis: {url: '${A}${B}'}
engine:
  lease: ${}
  concurrency: ${1A}
  shutdown_grace: ${A
  max_payload: '${A:-${B}}'
defaults: {timeout: '${A:-10}'}
`,
		want: `1: redis.url: the environment variable A is not set: set it, or write ${A:-default}
1: redis.url: the environment variable B is not set: set it, or write ${B:-default}
3: engine.lease: "" is not a name for an environment variable: write ${NAME} or ${NAME:-default}, or $${ for a plain ${
4: engine.concurrency: "1A" is not a name for an environment variable: write ${NAME} or ${NAME:-default}, or $${ for a plain ${
5: engine.shutdown_grace: ${ has no } behind it: add one, or write $${ for a plain ${
6: engine.max_payload: the default of ${A:-…} holds another ${: a default is plain text
7: defaults.timeout: "10" has no unit: write 10s
`,
	},
	{
		name: "aliases, merges and tags",
		file: `redis: &r {url: embedded}
engine: *r
tasks:
  a: &a {log: }
  b: *a
  c:
    <<: *a
  d: !foo {log: }
  e: {log: {level: !!str info}}
`,
		want: `2: engine: YAML aliases (*name) are not supported: write the value out, or quote it if it is text
5: tasks.b: YAML aliases (*name) are not supported: write the value out, or quote it if it is text
7: tasks.c: YAML merge keys (<<) are not supported: write the keys out
8: tasks.d: YAML tags (!name) are not supported: remove it, or quote the value if it is text
9: tasks.e.log.level: YAML tags (!name) are not supported: remove it, or quote the value if it is text
`,
	},
	{
		name: "a tab",
		file: "redis:\n\turl: embedded\n",
		want: "2: a tab indents this line: indent with spaces",
	},
	{
		name: "a tab among spaces",
		file: "redis:\n  url: embedded\n\tid_prefix: x\n",
		want: "3: a tab indents this line: indent with spaces",
	},
	{
		name: "a tab in the first line",
		file: "\tredis: x\n",
		want: "1: a tab indents this line: indent with spaces",
	},
	{
		name: "a list that is not closed",
		file: `tasks:
redis: [1, 2
b: 3
`,
		want: "2: is not YAML from here on (did not find expected ',' or ']'): look at the indentation, and at values that need quotes",
	},
	{
		name: "a quote that is not closed",
		file: `redis:
  url: "x
b: 2
`,
		want: "2: is not YAML from here on (found unexpected end of stream): look at the indentation, and at values that need quotes",
	},
	{
		name: "a colon that needs quotes",
		file: `redis: a: b
`,
		want: "1: is not YAML from here on (mapping values are not allowed in this context): look at the indentation, and at values that need quotes",
	},
	{
		name: "a line without a colon",
		file: `redis:
b
engine: 2
`,
		want: "2: is not YAML from here on (could not find expected ':'): look at the indentation, and at values that need quotes",
	},
	{
		name: "too little indentation",
		file: `redis:
  url: x
 id_prefix: y
`,
		want: "3: is not YAML from here on (did not find expected key): look at the indentation, and at values that need quotes",
	},
	{
		name: "a star that needs quotes",
		file: `tasks:
redis: *hunter2
`,
		want: "2: is not YAML from here on (alias of an unknown anchor): look at the indentation, and at values that need quotes",
	},
	{
		name: "an at sign that needs quotes",
		file: `a: b
redis: @x
`,
		want: "2: is not YAML from here on (found character that cannot start any token): look at the indentation, and at values that need quotes",
	},
	{
		name: "bytes that are not UTF-8",
		file: "a: b\nc: \xff\n",
		want: "2: is not YAML from here on (invalid leading UTF-8 octet): look at the indentation, and at values that need quotes",
	},
	{
		name: "a zero byte",
		file: "a: b\nc: \x00\n",
		want: "2: is not YAML from here on (control characters are not allowed): look at the indentation, and at values that need quotes",
	},
	{
		name: "two documents",
		file: `a: b
---
c: d
`,
		want: "2: a second document begins here: keep one and remove the --- between them",
	},
	{
		name: "text behind the end",
		file: `a: b
...
c: d
`,
		want: "3: is not YAML from here on (did not find expected <document start>): look at the indentation, and at values that need quotes",
	},
	{
		name: "a closing brace too many",
		file: `a: 1


}
`,
		want: "4: is not YAML from here on (did not find expected key): look at the indentation, and at values that need quotes",
	},
	{
		name: "an error behind things of several lines",
		file: `a: {b: [1,
 2,
 3]}
b: 'x
 y'
c: 'x
 y
 z
`,
		want: "6: is not YAML from here on (found unexpected end of stream): look at the indentation, and at values that need quotes",
	},
}
