package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// Errors in Redis's words.
const (
	errSyntax    = "ERR syntax error"
	errInteger   = "ERR value is not an integer or out of range"
	errFloat     = "ERR value is not a valid float"
	errWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
)

// call is one command on its way through the server.
type call struct {
	peer   *server.Peer
	client *client // nil if a Lua script sent it
	db     int
	name   string // upper case
	args   []string
}

// handler answers a command with exactly one reply. It runs with Server.mu.
type handler func(*Server, *call)

// handlers are the commands that the engine does not answer alone.
func handlers() map[string]handler {
	return map[string]handler{
		"SET": (*Server).set, "SETEX": (*Server).setex, "PSETEX": (*Server).setex, "GETEX": (*Server).getex,
		"EXPIRE": (*Server).expireKey, "PEXPIRE": (*Server).expireKey,
		"EXPIREAT": (*Server).expireKey, "PEXPIREAT": (*Server).expireKey,
		"TTL": (*Server).ttl, "PTTL": (*Server).ttl, "EXPIRETIME": (*Server).ttl, "PEXPIRETIME": (*Server).ttl,
		"INCR": (*Server).incr, "INCRBY": (*Server).incr, "DECR": (*Server).incr, "DECRBY": (*Server).incr, "HINCRBY": (*Server).hincrby,
		"RENAME": (*Server).passMove, "RENAMENX": (*Server).passMove,
		"LMOVE": (*Server).passMove, "RPOPLPUSH": (*Server).passMove,
		"COPY": (*Server).copyKey, "MOVE": (*Server).move,
		"ZUNIONSTORE": (*Server).storeSet, "ZINTERSTORE": (*Server).storeSet,
		"SUNIONSTORE": (*Server).storeSet, "SINTERSTORE": (*Server).storeSet, "SDIFFSTORE": (*Server).storeSet,
		"FLUSHALL": (*Server).flush, "FLUSHDB": (*Server).flush,
		"SWAPDB": (*Server).unsupported, "RESTORE": (*Server).unsupported, "DUMP": (*Server).unsupported,
		"HEXPIRE": (*Server).unsupported, "HPERSIST": (*Server).unsupported, "HTTL": (*Server).unsupported,
		"HPTTL": (*Server).unsupported, "HSETEX": (*Server).unsupported,

		"SCAN": (*Server).scan, "KEYS": (*Server).keys, "HSCAN": (*Server).scanMembers, "SSCAN": (*Server).scanMembers,

		"ZADD": (*Server).zadd, "ZINCRBY": (*Server).zincrby, "ZREM": (*Server).zrem,
		"ZREMRANGEBYRANK": (*Server).zremrange, "ZREMRANGEBYSCORE": (*Server).zremrange, "ZREMRANGEBYLEX": (*Server).zremrange,
		"ZPOPMIN": (*Server).zpop, "ZPOPMAX": (*Server).zpop,
		"ZCARD": (*Server).zcard, "ZSCORE": (*Server).zscore, "ZMSCORE": (*Server).zmscore,
		"ZRANK": (*Server).zrank, "ZREVRANK": (*Server).zrank,
		"ZCOUNT": (*Server).zcount, "ZLEXCOUNT": (*Server).zcount,
		"ZRANGE": (*Server).zrange, "ZREVRANGE": (*Server).zrange,
		"ZRANGEBYSCORE": (*Server).zrange, "ZREVRANGEBYSCORE": (*Server).zrange,
		"ZRANGEBYLEX": (*Server).zrange, "ZREVRANGEBYLEX": (*Server).zrange,
		"ZSCAN": (*Server).zscan,

		"MULTI": (*Server).multi, "EXEC": (*Server).exec, "DISCARD": (*Server).discard, "WATCH": (*Server).watch,
		"EVAL": (*Server).passOnly, "EVALSHA": (*Server).passOnly, "SCRIPT": (*Server).passOnly,
		"SELECT": (*Server).selectDB,

		"SUBSCRIBE": (*Server).subscribe, "PSUBSCRIBE": (*Server).subscribe,
		"UNSUBSCRIBE": (*Server).unsubscribe, "PUNSUBSCRIBE": (*Server).unsubscribe,
		"PUBLISH": (*Server).publishCmd, "PUBSUB": (*Server).pubsub, "PING": (*Server).ping,

		"CONFIG": (*Server).config, "INFO": (*Server).info, "CLIENT": (*Server).clientCmd, "QUIT": (*Server).passOnly,
		"OBJECT": (*Server).passOnly, "MEMORY": (*Server).passOnly,
	}
}

// queues reports whether the command waits for EXEC.
func (c *call) queues() bool {
	if c.client == nil || c.client.tx == nil {
		return false
	}
	switch c.name {
	case "EXEC", "DISCARD", "MULTI", "WATCH", "QUIT":
		return false
	}
	return true
}

// confined reports whether the client may not run the command because it is
// subscribed and speaks RESP2, where messages and replies look the same.
func (c *call) confined() bool {
	if c.client == nil || c.client.subscriptions() == 0 || c.peer.Resp3 {
		return false
	}
	switch c.name {
	case "SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "PING", "QUIT":
		return false
	}
	return true
}

// needsClient reports whether the command makes no sense in a script.
func (c *call) needsClient() bool {
	switch c.name {
	case "MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH", "SELECT", "MOVE",
		"SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE",
		"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "SCRIPT",
		"CONFIG", "CLIENT", "HELLO", "AUTH", "QUIT":
		return true
	}
	return false
}

// blocks reports whether the command may wait for other clients.
func (c *call) blocks() bool {
	switch c.name {
	case "BLPOP", "BRPOP", "BRPOPLPUSH", "BLMOVE", "BZPOPMIN", "BZPOPMAX", "BZMPOP":
		return true
	case "XREAD", "XREADGROUP":
		return slices.ContainsFunc(c.args, func(arg string) bool { return strings.EqualFold(arg, "BLOCK") })
	}
	return false
}

// arity reports whether the number of arguments is within limits, where a
// negative limit is none, and replies with an error if not.
func (c *call) arity(least, most int) bool {
	if len(c.args) >= least && (most < 0 || len(c.args) <= most) {
		return true
	}
	c.wrongArity()
	return false
}

func (c *call) wrongArity() {
	c.peer.WriteError(fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(c.name)))
}

// number parses an integer and replies with an error if it is none.
func (c *call) number(arg string) (int64, bool) {
	n, ok := parseInteger(arg)
	if !ok {
		c.peer.WriteError(errInteger)
	}
	return n, ok
}

// parseInteger takes an integer in its shortest form only, as Redis does.
func parseInteger(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}

// writeNullArray writes what stands for a missing array.
func (c *call) writeNullArray() {
	if c.peer.Resp3 {
		c.peer.WriteNull()
		return
	}
	c.peer.WriteLen(-1)
}

// writeScore writes a sorted set's score as Redis prints it: with 17 digits.
func (c *call) writeScore(score float64) {
	text := formatScore(score)
	if c.peer.Resp3 {
		c.peer.WriteRaw("," + text + "\r\n")
		return
	}
	c.peer.WriteBulk(text)
}

func (s *Server) unsupported(c *call) {
	c.peer.WriteError(fmt.Sprintf("ERR the embedded server does not support %s; use a real redis for it", c.name))
}

func (s *Server) selectDB(c *call) {
	if !c.arity(1, 1) {
		return
	}
	db, ok := c.database(c.args[0])
	if !ok {
		return
	}
	s.passOnly(c)
	c.client.db = db
}
