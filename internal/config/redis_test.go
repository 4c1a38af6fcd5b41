package config

import (
	"cmp"
	"reflect"
	"testing"
	"time"
)

func TestEveryWayToConnectComesOut(t *testing.T) {
	env := environment(map[string]string{"PW": "hunter2"})
	for _, tc := range []struct {
		file string
		want Redis
	}{
		{"{url: unix:///run/redis.sock}", Redis{URL: "unix:///run/redis.sock"}},
		{"{url: 'redis://h:1/3?read_timeout=2s'}", Redis{URL: "redis://h:1/3?read_timeout=2s"}},
		{"{url: redis://h:1, db: 3, password: '${PW}'}", Redis{URL: "redis://h:1", DB: 3, Login: Login{Password: "hunter2"}}},
		{
			"{url: 'redis://:${PW}@h:1', username: ann, cluster: false}",
			Redis{URL: "redis://:hunter2@h:1", Login: Login{Username: "ann"}},
		},
		{
			"{url: redis://ann@h:1, password_file: /run/pw}",
			Redis{URL: "redis://ann@h:1", Login: Login{PasswordFile: "/run/pw"}},
		},
		{
			"{url: rediss://h:1, tls: {ca: a, cert: b, key: c, server_name: d}}",
			Redis{URL: "rediss://h:1", TLS: &TLS{CA: "a", Cert: "b", Key: "c", ServerName: "d"}},
		},
		{
			"{addrs: ['s1:26379', '[::1]:26379'], master_name: m, sentinel_username: u, sentinel_password_file: f, db: 2, tls: {}, wait_replicas: 1, wait_timeout: 4s}",
			Redis{
				Addrs: []string{"s1:26379", "[::1]:26379"}, MasterName: "m", SentinelLogin: Login{Username: "u", PasswordFile: "f"},
				DB: 2, TLS: &TLS{}, WaitReplicas: 1, WaitTimeout: 4 * time.Second,
			},
		},
		{
			"{addrs: ['n1:6379'], cluster: true, username: ann, password: '${PW}', db: 0}",
			Redis{Addrs: []string{"n1:6379"}, Cluster: true, Login: Login{Username: "ann", Password: "hunter2"}},
		},
		{"{url: redis://h:1/0, cluster: true}", Redis{URL: "redis://h:1/0", Cluster: true}},
		{"{wait_replicas: 0, db: 0, cluster: false}", Redis{URL: Embedded}},
	} {
		got, err := Parse("f", []byte("redis: "+tc.file), env)
		tc.want.WaitTimeout = cmp.Or(tc.want.WaitTimeout, time.Second)
		tc.want.Notifications = NotificationsAuto
		if err != nil || !reflect.DeepEqual(got.Redis, tc.want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", tc.file, got.Redis, err, tc.want)
		}
	}
}

func TestAConnectionThatFlagsOrEnvironmentSpoilIsRefused(t *testing.T) {
	for _, tc := range []struct {
		redis Redis
		want  string
	}{
		{Redis{URL: "http://u:hunter2@h"}, "the URL of Redis is neither embedded nor a URL that begins with redis://, rediss:// or unix://"},
		{Redis{URL: "redis://u@h"}, "redis.url, with what flags and environment say: has a user name but no password: put :PASSWORD behind it, or add password_file"},
		{
			Redis{URL: "redis://u:hunter2@h", Login: Login{PasswordFile: "/run/hunter2"}},
			"redis.password_file, with what flags and environment say: the url has a password as well: keep one of them",
		},
		{
			Redis{URL: Embedded, Login: Login{PasswordFile: "/run/hunter2"}},
			"redis.password_file, with what flags and environment say: the embedded Redis has none: remove it, or name a Redis of your own in url",
		},
	} {
		if err := tc.redis.Check(); err == nil || err.Error() != tc.want {
			t.Errorf("got  %v\nwant %s", err, tc.want)
		}
	}
	for _, good := range []Redis{
		{URL: Embedded},
		{URL: "redis://u@h", Login: Login{PasswordFile: "f"}},
		{URL: "redis://u:p@h"},
		{Addrs: []string{"h:1"}, MasterName: "m", Login: Login{Username: "u", PasswordFile: "f"}},
		{Addrs: []string{"h:1"}, Cluster: true},
	} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
}

var badRedis = []badFile{
	{
		name: "url beside addrs, both Sentinel and Cluster",
		file: `redis:
  url: redis://h
  addrs: [h:1]
  master_name: m
  cluster: true
`,
		want: `3: redis.addrs: stands beside url: keep one of them
5: redis.cluster: stands beside master_name: keep one of them
`,
	},
	{
		name: "addresses of nobody knows what",
		file: `redis: {addrs: [h:1], cluster: false}
`,
		want: `1: redis.addrs: needs master_name if these are sentinels, or cluster: true if they are nodes; a single Redis has a url
`,
	},
	{
		name: "no addresses, sentinels without a master",
		file: `redis:
  addrs: []
  sentinel_username: u
  sentinel_password: hunter2
  sentinel_password_file: f
`,
		want: `2: redis.addrs: names nobody: want a list like [10.0.0.1:6379, 10.0.0.2:6379]
2: redis.addrs: needs master_name if these are sentinels, or cluster: true if they are nodes; a single Redis has a url
3: redis.sentinel_username: is for sentinels: it needs master_name and addrs
4: redis.sentinel_password: is for sentinels: it needs master_name and addrs
5: redis.sentinel_password_file: stands beside sentinel_password: keep one of them
5: redis.sentinel_password_file: is for sentinels: it needs master_name and addrs
`,
	},
	{
		name: "a master without sentinels",
		file: `redis:
  url: redis://h
  master_name: m
  sentinel_username: u
`,
		want: `3: redis.master_name: needs addrs, the host:port of each sentinel
4: redis.sentinel_username: needs sentinel_password or sentinel_password_file
`,
	},
	{
		name: "a Cluster of nobody",
		file: `redis:
  cluster: true
  wait_replicas: 101
  wait_timeout: 5s
`,
		want: `2: redis.cluster: needs addrs, the host:port of some nodes, or the url of one
3: redis.wait_replicas: "101" is not a whole number from 0 to 100
4: redis.wait_timeout: "5s" is too long: want 4s or less
`,
	},
	{
		name: "a Cluster on a socket, with a database",
		file: `redis:
  url: unix:///run/redis.sock?db=1
  cluster: true
  db: 2
  wait_timeout: 0s
`,
		want: `2: redis.url: names a database, but a Cluster has number 0 only: take it out
3: redis.cluster: needs addrs, the host:port of some nodes, or the url of one
4: redis.db: a Cluster has number 0 only: remove it
4: redis.db: the url says it as well: keep one of them
5: redis.wait_timeout: "0s" is too short: want 1ms or more
`,
	},
	{
		name: "all said twice",
		file: `redis:
  url: redis://u:hunter2@h/1
  username: u
  password: hunter2
  password_file: f
  db: 1
  tls: {ca: f}
`,
		want: `3: redis.username: the url says it as well: keep one of them
4: redis.password: the url says it as well: keep one of them
5: redis.password_file: stands beside password: keep one of them
5: redis.password_file: the url has a password as well: keep one of them
6: redis.db: the url says it as well: keep one of them
7: redis.tls: needs a url that begins with rediss://
`,
	},
	{
		name: "users without passwords, a certificate without its key",
		file: `redis:
  url: rediss://u:@h
  tls:
    cert: f
    ca: ''
`,
		want: `2: redis.url: has a user name but no password: put :PASSWORD behind it, or add password_file
4: redis.tls.cert: has no key beside it: add the file of its private key
5: redis.tls.ca: is empty: give it a value, or remove the line
`,
	},
	{
		name: "a key without its certificate",
		file: `redis:
  addrs: [h:1]
  cluster: true
  username: u
  tls: {key: f}
`,
		want: `4: redis.username: needs password or password_file
5: redis.tls.key: has no cert beside it: add the file of its certificate
`,
	},
	{
		name: "what the embedded Redis has not",
		file: `redis:
  username: u
  password: hunter2
  password_file: f
  db: 1
  tls: {}
  wait_replicas: 1
`,
		want: `2: redis.username: the embedded Redis has none: remove it, or name a Redis of your own in url
3: redis.password: the embedded Redis has none: remove it, or name a Redis of your own in url
4: redis.password_file: the embedded Redis has none: remove it, or name a Redis of your own in url
5: redis.db: the embedded Redis has none: remove it, or name a Redis of your own in url
6: redis.tls: the embedded Redis has none: remove it, or name a Redis of your own in url
7: redis.wait_replicas: the embedded Redis has none: remove it, or name a Redis of your own in url
`,
	},
}
