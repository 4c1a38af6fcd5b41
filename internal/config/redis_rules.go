package config

import (
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
)

// Check says what is wrong with a connection of which a part does not come from
// a file, without repeating it: the first thing.
func (r Redis) Check() error {
	if r.URL != "" {
		if err := CheckRedisURL(r.URL); err != nil {
			return fmt.Errorf("the URL of Redis %w", err)
		}
	}
	given := map[string]bool{
		"url": r.URL != "", "addrs": len(r.Addrs) > 0, "master_name": r.MasterName != "",
		"username": r.Login.Username != "", "password": r.Login.Password != "", "password_file": r.Login.PasswordFile != "",
	}
	for broken := range r.broken(func(key string) bool { return given[key] }) {
		return fmt.Errorf("redis.%s, with what flags and environment say: %s", broken.key, broken.why)
	}
	return nil
}

// rule is about a key that does not go with others.
type rule struct {
	broken bool
	key    string // whose line to change; where it is not given, the rule means nothing
	why    string
}

// broken finds what in a connection does not go together. has says which keys
// are given, well or not.
func (r *Redis) broken(has func(key string) bool) iter.Seq[rule] {
	at := placeOf(r.URL)
	rules := slices.Concat(r.whereRules(at, has), sentinelRules(has))
	if r.isEmbedded(has) {
		rules = append(rules, r.embeddedRules()...)
	} else {
		rules = append(rules, r.whoRules(at, has)...)
	}
	return func(yield func(rule) bool) {
		for _, rule := range rules {
			if rule.broken && has(rule.key) && !yield(rule) {
				return
			}
		}
	}
}

const (
	alsoInURL   = "the url says it as well: keep one of them"
	besideOther = "stands beside %s: keep one of them"
)

func (r *Redis) whereRules(at place, has func(string) bool) []rule {
	sentinel, plain := has("master_name"), at.scheme == "redis" || at.scheme == "unix"
	return []rule{
		{has("url"), "addrs", fmt.Sprintf(besideOther, "url")},
		{!sentinel && !r.Cluster, "addrs", "needs master_name if these are sentinels, or cluster: true if they are nodes; a single Redis has a url"},
		{!has("addrs"), "master_name", "needs addrs, the host:port of each sentinel"},
		{sentinel && r.Cluster, "cluster", fmt.Sprintf(besideOther, "master_name")},
		{!sentinel && r.Cluster && !has("addrs") && !at.isTCP(), "cluster", "needs addrs, the host:port of some nodes, or the url of one"},
		{r.Cluster && at.db != "" && at.db != "0", "url", "names a database, but a Cluster has number 0 only: take it out"},
		{r.Cluster && r.DB != 0, "db", "a Cluster has number 0 only: remove it"},
		{at.db != "", "db", alsoInURL},
		{plain, "tls", "needs a url that begins with rediss://"},
	}
}

func (r *Redis) whoRules(at place, has func(string) bool) []rule {
	password := at.password || has("password") || has("password_file")
	return []rule{
		{at.user != "" && !password, "url", "has a user name but no password: put :PASSWORD behind it, or add password_file"},
		{at.user != "", "username", alsoInURL},
		{!password, "username", "needs password or password_file"},
		{at.password, "password", alsoInURL},
		{has("password"), "password_file", fmt.Sprintf(besideOther, "password")},
		{at.password, "password_file", "the url has a password as well: keep one of them"},
	}
}

func sentinelRules(has func(string) bool) []rule {
	const name, password, file = "sentinel_username", "sentinel_password", "sentinel_password_file"
	rules := []rule{
		{!has(password) && !has(file), name, "needs " + password + " or " + file},
		{has(password), file, fmt.Sprintf(besideOther, password)},
	}
	for _, key := range []string{name, password, file} {
		rules = append(rules, rule{!has("master_name"), key, "is for sentinels: it needs master_name and addrs"})
	}
	return rules
}

// isEmbedded says whether nothing names another Redis, however badly.
func (r *Redis) isEmbedded(has func(string) bool) bool {
	return !has("addrs") && !has("master_name") && !r.Cluster && (!has("url") || r.URL == Embedded)
}

func (r *Redis) embeddedRules() []rule {
	const why = "the embedded Redis has none: remove it, or name a Redis of your own in url"
	return []rule{
		{true, "username", why},
		{true, "password", why},
		{true, "password_file", why},
		{true, "tls", why},
		{r.DB != 0, "db", why},
		{r.WaitReplicas != 0, "wait_replicas", why},
	}
}

// place is what a URL says.
type place struct {
	scheme, user, db string
	password         bool
}

func placeOf(raw string) place {
	u, err := url.Parse(raw)
	if err != nil {
		return place{}
	}
	p := place{scheme: u.Scheme, user: u.User.Username(), db: u.Query().Get("db")}
	password, _ := u.User.Password()
	p.password = password != ""
	if p.isTCP() && p.db == "" {
		p.db = strings.Trim(u.Path, "/")
	}
	return p
}

func (p place) isTCP() bool { return p.scheme == "redis" || p.scheme == "rediss" }
