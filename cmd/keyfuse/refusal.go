package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// refusal is an error that Redis answers, and what to do.
type refusal struct {
	mark  string // in Redis's text, lower case
	next  string
	final bool // waiting won't help: somebody must change something here
}

// refusedError is an answer of Redis without what only its authors understand:
// the place in a script.
type refusedError struct{ err error }

func (e *refusedError) Error() string {
	text, _, _ := strings.Cut(e.err.Error(), " script: ")
	return "Redis refuses: " + strings.TrimRight(text, ". ")
}

func (e *refusedError) Unwrap() error { return e.err }

// anyUser stands for the user's name where nobody knows it.
const anyUser = "<user>"

const (
	toMaster  = "this is a replica: name the master in redis.url, or its sentinels in redis.addrs and redis.master_name"
	toCluster = "this is a node of a Redis Cluster: set redis.cluster to true, and redis.addrs to some of its nodes in the place of redis.url"
	toRedis   = "Keyfuse needs Redis 7.0 or newer, and no sentinel in redis.url: keyfuse doctor says which this is"
)

// The first that fits counts.
var refusals = []refusal{
	{"loading", "it is reading its data: try again when it is done", false},
	{"masterdown", toMaster, false},
	{"readonly", toMaster, false},
	{"read only", toMaster, false},
	{"oom", "it is out of memory: raise maxmemory, or delete keys (keep maxmemory-policy noeviction)", false},
	{"misconf", "it can't save to disk and takes no writes: see its log and the space on its disk", false},
	{"noauth", "set redis.password_file, or put the password into redis.url: redis://USER:PASSWORD@HOST:PORT", true},
	{"wrongpass", "correct the user name and password in redis.url, or redis.username and redis.password_file", true},
	{"invalid password", "correct the password in redis.url, redis.password or redis.password_file", true},
	{"without any password configured", "take the password out of redis.url, redis.password or redis.password_file", true},
	{"max number of clients", "raise maxclients, or close connections", false},
	{"db index is out of range", "choose a lower database number in redis.url or redis.db, or raise databases in redis.conf", true},
	{"unknown command", toRedis, true},
	{"clusterdown", "some slots of the Cluster have no master, or most masters are away: redis-cli --cluster check HOST:PORT says which", false},
	{"moved ", toCluster, true},
	{"crossslot", toCluster, true},
	{"non local key", toCluster, true},
	{"select is not allowed in cluster mode", toCluster + ", without a database number", true},
	{"cluster support disabled", "this is no Redis Cluster: take redis.cluster out, and name a single Redis in redis.url", true},
	{"busy ", "somebody's script blocks it: SCRIPT KILL in redis-cli ends it", false},
}

// refusalOf looks whether an error is a known answer of Redis.
func refusalOf(err error) (refusal, bool) {
	answer, ok := errors.AsType[redis.Error](err)
	if !ok {
		return refusal{}, false
	}
	if rule, denied := missingRule(answer.Error()); denied {
		return refusal{next: "allow it: ACL SETUSER " + anyUser + " " + rule + "; keyfuse doctor says whether more is missing", final: true}, true
	}
	text := strings.ToLower(answer.Error())
	for _, r := range refusals {
		if strings.Contains(text, r.mark) {
			return r, true
		}
	}
	return refusal{next: "keyfuse doctor looks for the reason"}, true
}

var deniedCommand = regexp.MustCompile(`'([a-z|_-]+)' command`)

// missingRule is the ACL rule for what Redis does not allow. Within a script,
// Redis before 7.2 keeps to itself which command that was.
func missingRule(answer string) (rule string, denied bool) {
	if !strings.HasPrefix(answer, "NOPERM") && !strings.Contains(answer, "user executing the script can't") {
		return "", false
	}
	switch command := deniedCommand.FindStringSubmatch(answer); {
	case command != nil:
		return "+" + command[1], true
	case strings.Contains(answer, "key"):
		return "~* (or less: the ids, class: and keyfuse:)", true
	case strings.Contains(answer, "channel"):
		return "&keyfuse:* &__keyevent@*", true
	}
	return "+@read +@write +publish +time", true
}

// tlsAdvice says what to do about an error of TLS; all of them are for somebody
// to mend.
func tlsAdvice(err error) (string, bool) {
	const own = "redis.tls.cert and redis.tls.key"
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "name the file of the authority that signed Redis's certificate in redis.tls.ca", true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "name the host as Redis's certificate does, or set redis.tls.server_name", true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "what listens there speaks no TLS: begin redis.url with redis://, or name the port for TLS", true
	}
	text := err.Error()
	switch {
	case !strings.Contains(text, "tls: "):
		return "", false
	case strings.Contains(text, "certificate required"):
		return "Redis asks for a certificate: set " + own, true
	case strings.Contains(text, "remote error"):
		return "Redis does not accept " + own + ": its tls-ca-cert-file must have signed that certificate", true
	}
	return "see what Redis's certificate and the files in redis.tls say", true
}
