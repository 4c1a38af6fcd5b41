//go:build unix

package embedded_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// sequence is a list of commands that must get the same replies from the
// embedded server and from a real one. In a command,
//
//	{ms+5} and {s-5}  are a moment in Unix ms or s
//	'a b'             is one argument
//	~PTTL k           allows the number to differ by what the test took
//	@gone k           waits until EXISTS k is 0
type sequence struct {
	name  string
	lines string
	plain bool // makes no sense in MULTI or in a script
	now   time.Time
}

var sequences = []sequence{
	{name: "set with ttl", lines: `
		SET k v EX 100 | TTL k | ~PTTL k | SET k v | TTL k | SET k v PX 100000 | SET k w KEEPTTL | TTL k | GET k
		SET k v PXAT {ms+90000} | TTL k | SET k v EXAT {s+80} | EXPIRETIME k | PEXPIRETIME k
		SETEX k 70 v | TTL k | PSETEX k 60000 v | TTL k | SETNX k x | TTL k | GETSET k y | TTL k
		SET k v EX 100 | APPEND k x | TTL k | INCR n | EXPIRE n 10 | INCR n | TTL n | MSET n 1 k 2 | TTL n`},
	{name: "set conditions", lines: `
		SET k v XX | SET k v NX | SET k w NX | SET k w XX GET | SET k x NX GET | GET k | SET k y XX PX 5000 | TTL k
		SET k z NX PX 90000 | TTL k | SET k z GET | RPUSH l a | SET l v GET | SET l v | GET l | SET new v NX GET EX 9 | TTL new`},
	{name: "set refuses", plain: true, lines: `
		SET k v EX 0 | SET k v PX -1 | SET k v EX x | SET k v EX | SET k v EX 1 PX 1 | SET k v KEEPTTL EX 1 | SET k v NX XX
		SET k v FOO | SET k | SETEX k 0 v | PSETEX k -5 v | SETEX k x v | SET k v EX 9223372036854775807 | EXISTS k
		SET k v EX 1 KEEPTTL | SET k v PX 9223372036854775807 | GETEX k EX 0 | GETEX k FOO 1 | GETEX k PX x`},
	{name: "set in the past", lines: `
		SET k v PXAT 1 | GET k | EXISTS k | TTL k | SET k v EXAT 1 | TYPE k | SET k v | SET k w PXAT {ms-1} | GET k | SET k v NX | GET k`},
	{name: "getex", lines: `
		GETEX k | SET k v | GETEX k EX 50 | TTL k | GETEX k | TTL k | GETEX k PERSIST | TTL k | GETEX k PX 40000 | TTL k
		GETEX k PXAT {ms+30000} | TTL k | GETEX k EXAT {s+20} | EXPIRETIME k | GETEX k PXAT 1 | EXISTS k | RPUSH l a | GETEX l EX 5 | TTL l`},
	{name: "counters", lines: `
		INCR n | INCRBY n 5 | DECR n | DECRBY n 10 | INCRBY n -5 | DECRBY n -50 | INCRBY n 0 | TTL n | EXPIRE n 100 | INCR n | TTL n | GET n | TYPE n
		SET s x | INCR s | RPUSH l a | INCR l | DECRBY l 1 | SET n 9223372036854775807 | INCR n | INCRBY n -1 | INCRBY n 2 | DECRBY n -2 | GET n
		SET n -9223372036854775808 | DECR n | INCRBY n 1 | DECRBY n 2 | GET n | DECRBY n -9223372036854775808 | DECRBY none -9223372036854775808 | EXISTS none
		SET n 01 | INCR n | SET n +1 | INCR n | SET n -0 | INCR n | SET n '' | INCR n | SET n 1.0 | DECR n | SET n ' 1' | INCR n | SET n 9223372036854775808 | INCR n
		INCRBY m x | INCRBY m 1.5 | INCRBY m +1 | INCRBY m 01 | INCRBY m 9223372036854775808 | DECRBY m x | EXISTS m`},
	{name: "counters refuse", plain: true, lines: `INCR | INCR a b | INCRBY a | DECR | DECRBY a 1 2 | EXISTS a`},
	{name: "strings", lines: `
		APPEND k abc | APPEND k '' | APPEND k def | GET k | STRLEN k | STRLEN none | EXPIRE k 100 | APPEND k g | TTL k | RPUSH l a | APPEND l x | STRLEN l
		GETRANGE k 0 -1 | GETRANGE k 0 0 | GETRANGE k 1 3 | GETRANGE k -3 -1 | GETRANGE k -3 1 | GETRANGE k 5 2 | GETRANGE k 5 99 | GETRANGE k 99 100
		GETRANGE k -99 1 | GETRANGE k -99 -99 | GETRANGE k -1 -99 | GETRANGE k 0 9223372036854775807 | GETRANGE k -9223372036854775808 -9223372036854775808
		GETRANGE none 0 -1 | GETRANGE l 0 -1 | GETRANGE k x 1 | GETRANGE k 0 x | INCR n | GETRANGE n 0 -1 | APPEND n 0 | INCR n | STRLEN n | APPEND k \x00é | STRLEN k`},
	{name: "several keys", lines: `
		SET a 1 | SET b '' | RPUSH l x | HSET h f v | ZADD z 1 m | SADD s m | MGET a none l b h z s a | MGET l | MGET none | EXISTS a none l h z s a a | EXISTS none
		DEL a none l a | EXISTS a l b | UNLINK b none h | EXISTS b h z`},
	{name: "keep a ttl", lines: `
		SET k v KEEPTTL | TTL k | SET k v PXAT {ms+90000} | SET k w KEEPTTL | PEXPIRETIME k | SET k x XX KEEPTTL GET | PEXPIRETIME k | SET k y NX KEEPTTL | PEXPIRETIME k
		RPUSH l a | PEXPIREAT l {ms+80000} | PEXPIRETIME l | SET l v KEEPTTL | PEXPIRETIME l | TYPE l | SET k v PXAT {ms-1} | EXISTS k | PEXPIRETIME k | SET k z KEEPTTL | TTL k`},
	{name: "hashes", lines: `
		HMGET h a b | HSET h a 1 b x | HMGET h a none b a | HINCRBY h a 5 | HINCRBY h a -10 | HINCRBY h new 3 | HINCRBY other n 1 | HINCRBY h b 1 | HMGET h a b new
		HSET h big 9223372036854775807 | HINCRBY h big 1 | HINCRBY h big -1 | HSET h low -9223372036854775808 | HINCRBY h low -1 | HMGET h big low | HINCRBY h a x | HINCRBY h a 1.5
		EXPIRE h 100 | HINCRBY h a 1 | TTL h | HSET h p +1 z 01 e '' | HINCRBY h p 1 | HINCRBY h z 1 | HINCRBY h e 1 | HINCRBY h a +1 | SET s v | HMGET s a | HINCRBY s a 1 | HGET h a | HLEN h | HDEL h a none | HEXISTS h a`},
	{name: "lists", lines: `
		LPUSH l a b c | LRANGE l 0 -1 | LTRIM l 0 1 | LRANGE l 0 -1 | LPUSH l d e | LTRIM l 0 2 | LRANGE l 0 2 | LRANGE l -2 -1 | LRANGE l 1 99 | LRANGE l 5 9 | LRANGE l 2 1 | LRANGE l -99 0
		LRANGE l 0 -99 | LRANGE l 0 9223372036854775807 | LRANGE none 0 -1 | RPUSH l f g | LLEN l | LINDEX l -1 | EXPIRE l 100 | LPUSH l h | LTRIM l 0 3 | TTL l | LTRIM l -2 -1 | LRANGE l 0 -1
		LTRIM l 1 0 | EXISTS l | TTL l | LTRIM none 0 1 | LPUSH l a | TTL l | LTRIM l 5 9 | EXISTS l | SET s v | LPUSH s a b | LTRIM s 0 1 | LRANGE s 0 -1 | LRANGE none x 1 | LTRIM none 0 x | LPOP l | RPUSH l 1 2 3 | LPOP l 2 | LRANGE l 0 -1`},
	{name: "sets", lines: `
		SMEMBERS s | SADD s 3 1 2 1 | SMEMBERS s | SREM s 1 9 | SMEMBERS s | SCARD s | SISMEMBER s 2 | SREM s 2 3 | EXISTS s | SADD t m | EXPIRE t 100 | SADD t n | TTL t | SREM t n | SMEMBERS t
		SET k v | SMEMBERS k | SADD k m`},
	{name: "expire", lines: `
		EXPIRE k 10 | SET k v | TTL k | PTTL k | EXPIRETIME k | PEXPIRETIME k | EXPIRE k 100 | TTL k | PEXPIRE k 90000 | TTL k
		EXPIREAT k {s+50} | EXPIRETIME k | PEXPIREAT k {ms+50000} | TTL k | PERSIST k | PERSIST k | TTL k | PERSIST none
		TTL none | PTTL none | EXPIRETIME none | PEXPIRETIME none | EXPIRE k 1500 | DEL k | TTL k | SET k v | TTL k`},
	{name: "expire now deletes", lines: `
		SET k v | EXPIRE k 0 | EXISTS k | SET k v | EXPIRE k -1 | EXISTS k | SET k v | PEXPIREAT k 1 | EXISTS k
		SET k v | EXPIREAT k {s-5} | EXISTS k | SET k v EX 10 | PEXPIRE k -100 GT | TTL k | PEXPIRE k -100 LT | EXISTS k
		SET k v | EXPIRE k -1 XX | EXISTS k | EXPIRE k -1 NX | EXISTS k`},
	{name: "expire conditions", lines: `
		SET k v | EXPIRE k 100 XX | EXPIRE k 100 GT | EXPIRE k 100 NX | EXPIRE k 200 NX | EXPIRE k 200 XX | TTL k
		EXPIRE k 100 GT | EXPIRE k 300 GT | TTL k | EXPIRE k 400 LT | EXPIRE k 50 LT | TTL k | PERSIST k | EXPIRE k 10 LT | TTL k
		EXPIRE k 20 XX GT | TTL k | PEXPIREAT k {ms+60000} XX LT | PEXPIREAT k {ms+70000} GT | TTL k`},
	{name: "expire refuses", plain: true, lines: `
		EXPIRE k | EXPIRE k x | SET k v | EXPIRE k 1 NX XX | EXPIRE k 1 NX GT | EXPIRE k 1 GT LT | EXPIRE k 1 FOO
		EXPIRE k 9223372036854775807 | PEXPIRE k 9223372036854775807 | EXPIRE k -9223372036854775808 | TTL k | TTL | PTTL a b`},
	{name: "ttl travels", lines: `
		SET a v EX 100 | RENAME a b | TTL a | TTL b | SET c w | RENAME c b | TTL b | SET d v EX 50 | COPY d e | TTL e | COPY d e
		COPY d b REPLACE | TTL b | SET f v | COPY f b REPLACE | TTL b | GET b | RENAMENX d e | RENAMENX d g | TTL g | RENAME none x
		COPY none x | SET h v EX 9 | RENAME h h | TTL h | RPUSH l a | EXPIRE l 30 | LMOVE l m LEFT LEFT | TTL l | TTL m
		ZADD z 1 a | EXPIRE z 40 | COPY z y | TTL y | ZADD y 2 b | TTL y | ZRANGE z 0 -1 | ZRANGE y 0 -1 WITHSCORES
		RENAME y z | ZRANGE z 0 -1 | ZRANGE y 0 -1`},
	{name: "databases", plain: true, lines: `
		SELECT 16 | SELECT -1 | SELECT x | SELECT 15 | SET k v EX 100 | MOVE k 3 | TTL k | SELECT 3 | TTL k | GET k | MOVE k 3
		MOVE none 0 | COPY k k DB 4 | SELECT 4 | TTL k | ZADD z 1 a | SELECT 3 | SET z v | COPY z z DB 4 | COPY z z DB 4 REPLACE
		SELECT 4 | TYPE z | ZRANGE z 0 -1 | FLUSHDB | DBSIZE | SELECT 3 | DBSIZE | COPY k k DB 16 | COPY k k FOO | SELECT 0`},
	{name: "keys expire", plain: true, lines: `
		SET a v PX 30 | SET b v PX 30 | RPUSH l x | PEXPIRE l 30 | ZADD z 1 m | PEXPIRE z 30 | SET stay v | HSET h f v | PEXPIRE h 30
		@gone a | @gone b | @gone l | @gone z | @gone h | GET a | EXISTS a b l z h stay | TTL a | TYPE l | ZRANGE z 0 -1
		ZCARD z | LLEN l | KEYS * | SCAN 0 COUNT 1000 | DBSIZE | SET a w NX | TTL a | RENAME b x | ZADD z 2 n | ZRANGE z 0 -1 | TTL z`},
	{name: "expired in a script", plain: true, lines: `
		EVAL "redis.call('SET','k','v','PXAT',1) return {redis.call('EXISTS','k'),redis.call('TTL','k'),redis.call('GET','k')}" 0
		EVAL "redis.call('SET','k','v','PX',50000) return {redis.call('TTL','k'),redis.call('PEXPIRETIME','k')-redis.call('PTTL','k')>1e12 and 1}" 0
		TTL k | EVAL "return redis.call('PEXPIRE',KEYS[1],20)" 1 k | @gone k | EVAL "return redis.call('EXISTS',KEYS[1])" 1 k`},
	{name: "scan", plain: true, lines: `
		SET one 1 | SCAN 0 COUNT 1000 | SCAN 0 MATCH o* COUNT 1000 | SCAN 0 MATCH x* | SCAN 0 MATCH '[a-z' COUNT 1000 | SCAN 0 MATCH \x6f* COUNT 1000
		SCAN 0 TYPE hash COUNT 1000 | SCAN 0 TYPE string MATCH *e COUNT 1000 | SCAN x | SCAN 0 COUNT 0 | SCAN 0 COUNT x | SCAN 0 FOO 1 | SCAN 0 MATCH
		KEYS [^a]ne | KEYS \x | KEYS ? | KEYS *n* | HSET h f v | HSCAN h 0 | HSCAN h 0 MATCH g* | HSCAN h 0 MATCH f COUNT 5
		SADD s m | SSCAN s 0 MATCH m | SSCAN s 0 MATCH [ | SSCAN one 0 | HSCAN none 0 | HSCAN h 0 COUNT 0 | SSCAN s x`},
	{name: "config", plain: true, lines: `
		CONFIG GET maxmemory | CONFIG GET maxmemory-policy | CONFIG GET appendonly | CONFIG GET save | CONFIG GET nosuch
		CONFIG SET notify-keyspace-events Ex | CONFIG GET notify-keyspace-events | CONFIG SET notify-keyspace-events '' | CONFIG GET NOTIFY-keyspace-*
		CONFIG SET notify-keyspace-events xKEg$ | CONFIG GET notify-keyspace-events | CONFIG SET notify-keyspace-events AKE
		CONFIG GET notify-keyspace-events | CONFIG SET notify-keyspace-events KEAm | CONFIG GET notify-keyspace-events
		CONFIG SET notify-keyspace-events g$lshzxetdE | CONFIG GET notify-keyspace-events | CONFIG SET notify-keyspace-events nE
		CONFIG GET notify-keyspace-events | CONFIG SET notify-keyspace-events Eq | CONFIG GET notify-keyspace-events
		CONFIG SET nosuch 1 | CONFIG SET notify-keyspace-events KA nosuch 1 | CONFIG GET notify-keyspace-events | CONFIG SET notify-keyspace-events
		CONFIG GET | CONFIG SET maxmemory 0 | CONFIG FOO | CONFIG | CONFIG RESETSTAT | CONFIG GET maxmemory nosuch`},
	{name: "pubsub", plain: true, lines: `
		PUBLISH c m | PUBSUB NUMPAT | PUBSUB NUMSUB a b | PUBSUB CHANNELS | PUBSUB CHANNELS a* | PUBLISH c | PUBSUB | SUBSCRIBE
		SUBSCRIBE c | PSUBSCRIBE c* | UNSUBSCRIBE c | UNSUBSCRIBE | PUNSUBSCRIBE c* | PUNSUBSCRIBE | PING | PING x`},
	{name: "multi", plain: true, lines: `
		MULTI | MULTI | SET k v PX 50000 | INCR k | TTL k | ZADD z 1 a | ZRANGE z 0 -1 | EXEC | TTL k | EXEC | DISCARD
		MULTI | SET k w | DISCARD | GET k | MULTI | NOSUCH | SET k w | EXEC | GET k | MULTI | GET | EXEC | WATCH k | SET k x | MULTI | GET k | EXEC
		WATCH k | MULTI | GET k | EXEC | WATCH k | UNWATCH | SET k y | MULTI | GET k | EXEC | MULTI | EXEC | MULTI | WATCH k | DISCARD
		WATCH k | SET k z | DISCARD | MULTI | DISCARD | MULTI | GET k | EXEC | MULTI | SELECT 2 | SET k two | GET k | SELECT 0 | EXEC | GET k
		MULTI | CONFIG GET save | EVAL "return redis.call('SET','e','v','EX',70)" 0 | TTL e | RPUSH k a | PING | EXEC
		MULTI | INCRBY n x | SET k v EX x | LTRIM l x 1 | EXPIRE k | EXEC | MULTI | INCRBY n x | SET k v EX x | LTRIM l x 1 | INCR n | EXEC | GET n
		SET w v PX 30 | WATCH w | @gone w | MULTI | PING | EXEC`},
	{name: "zadd", lines: `
		ZADD z 1 a | ZADD z 1 a | ZADD z 2 a | ZADD z CH 3 a 1 b | ZADD z NX 9 a 9 c | ZADD z XX 5 a 5 d | ZADD z XX CH 6 a 7 e | ZADD z GT 1 a 99 c
		ZADD z LT CH 1 a 100 c | ZADD z GT CH 50 a | ZADD z GT XX 3 new | ZADD z GT 3 new | ZADD z INCR 2 a | ZADD z NX INCR 1 a | ZADD z XX INCR 1 none
		ZADD z GT INCR -5 a | ZADD z LT INCR -5 a | ZADD z inf i -inf j +inf k | ZADD z 0.5 h -0 zero 1e300 big 1700000000123 ms
		ZADD z 1 dup 2 dup 3 dup | ZINCRBY z 1.25 h | ZINCRBY z -3 fresh | ZRANGE z 0 -1 WITHSCORES | ZSCORE z ms | ZSCORE z none | ZSCORE none m
		ZMSCORE z a none h i j | ZMSCORE none a b | ZCARD z | ZCARD none | ZADD z XX 1 none2 | ZADD none XX 1 a | EXISTS none`},
	{name: "zadd refuses", plain: true, lines: `
		ZADD z | ZADD z 1 | ZADD z x a | ZADD z nan a | ZADD z 1 a 2 | ZADD z NX XX 1 a | ZADD z GT LT 1 a | ZADD z NX GT 1 a | ZADD z INCR 1 a 2 b
		ZADD z 1 a | ZINCRBY z x a | ZINCRBY z 1 | ZADD z inf i | ZINCRBY z -inf i | SET s v | ZADD s 1 a | ZCARD s | ZSCORE s a | ZMSCORE s a
		ZRANGE s 0 -1 | ZRANK s a | ZREM s a | ZPOPMIN s | ZCOUNT s 0 1 | ZSCAN s 0 | ZREMRANGEBYRANK s 0 1 | ZINCRBY s 1 a | ZADD z NX | ZADD z CH 1 | ZCARD z`},
	{name: "zrange by rank", lines: `
		ZADD z 1 a 2 b 2 c 3 d 4 e | ZRANGE z 0 0 | ZRANGE z 0 -1 | ZRANGE z -2 -1 WITHSCORES | ZRANGE z 1 2 | ZRANGE z 3 99 | ZRANGE z 5 9 | ZRANGE z 3 1
		ZRANGE z -99 1 | ZRANGE z 0 -99 | ZRANGE z 0 1 REV | ZREVRANGE z 0 1 WITHSCORES | ZREVRANGE z -2 -1 | ZRANGE none 0 -1 | ZRANK z c | ZREVRANK z c
		ZRANK z none | ZRANK none a | ZREVRANK z none | ZRANGE z 0 9223372036854775807 | ZRANGE z -9223372036854775808 0`},
	{name: "zrange by score", lines: `
		ZADD z -5 a 1 b 2 c 2 d 3.5 e inf f -inf g | ZRANGE z 1 3 BYSCORE | ZRANGE z (1 (3.5 BYSCORE WITHSCORES | ZRANGE z -inf +inf BYSCORE LIMIT 1 2
		ZRANGE z -inf inf BYSCORE LIMIT 0 -1 | ZRANGE z -inf inf BYSCORE LIMIT -1 2 | ZRANGE z -inf inf BYSCORE LIMIT 9 2 | ZRANGE z 3 1 BYSCORE REV
		ZRANGE z inf -inf BYSCORE REV LIMIT 1 3 WITHSCORES | ZRANGEBYSCORE z (2 (inf | ZRANGEBYSCORE z -inf 2 WITHSCORES LIMIT 1 2 | ZREVRANGEBYSCORE z 2 1
		ZREVRANGEBYSCORE z (2 -inf LIMIT 0 1 | ZRANGEBYSCORE z 3 1 | ZRANGEBYSCORE z (2 (2 | ZRANGEBYSCORE z (-inf (inf | ZCOUNT z -inf inf | ZCOUNT z (1 2 | ZCOUNT z 9 1
		ZCOUNT none 0 1 | ZRANGEBYSCORE none 0 1 | ZRANGE z 1e400 inf BYSCORE | ZRANGE z -inf 1 BYSCORE LIMIT 0 0`},
	{name: "zrange by lex", lines: `
		ZADD z 0 a 0 b 0 bb 0 c 0 B 0 ~ | ZRANGE z - + BYLEX | ZRANGEBYLEX z [b (c | ZRANGEBYLEX z (b + LIMIT 1 2 | ZRANGE z + [b BYLEX REV | ZREVRANGEBYLEX z (c - LIMIT 0 1
		ZRANGEBYLEX z + - | ZRANGEBYLEX z [ + | ZLEXCOUNT z - + | ZLEXCOUNT z [b [bb | ZLEXCOUNT none - + | ZREMRANGEBYLEX z [b [bb | ZRANGE z 0 -1 | ZREMRANGEBYLEX z - + | EXISTS z`},
	{name: "zrange refuses", plain: true, lines: `
		ZADD z 1 a | ZRANGE z 0 | ZRANGE z x 1 | ZRANGE z 0 x | ZRANGE z 0 1 FOO | ZRANGE z 0 1 LIMIT 0 1 | ZRANGE z 0 1 BYSCORE LIMIT 0 | ZRANGE z 0 1 BYSCORE LIMIT x 1
		ZRANGE z x 1 BYSCORE | ZRANGE z 0 1 BYLEX | ZRANGE z - + BYLEX WITHSCORES | ZRANGE z - + BYLEX BYSCORE | ZRANGEBYSCORE z (x 1 | ZRANGEBYSCORE z nan 1 | ZCOUNT z a b
		ZRANGEBYLEX z a b | ZRANGEBYLEX z [a [b WITHSCORES | ZREVRANGE z 0 1 REV | ZREVRANGE z 0 1 LIMIT 0 1 | ZLEXCOUNT z a b | ZREMRANGEBYSCORE z x y | ZREMRANGEBYRANK z x y | ZREMRANGEBYLEX z x y | ZCARD z`},
	{name: "zset removal", lines: `
		ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h 9 i | ZREM z a none a | ZREM none a | ZREMRANGEBYRANK z 0 0 | ZREMRANGEBYRANK z -1 -1 | ZREMRANGEBYSCORE z 3 (5 | ZRANGE z 0 -1
		ZREMRANGEBYRANK z 9 10 | ZREMRANGEBYSCORE none 0 1 | ZPOPMIN z | ZPOPMAX z 2 | ZPOPMIN z 0 | ZPOPMIN none | ZPOPMIN none 3 | ZRANGE z 0 -1 WITHSCORES | ZPOPMAX z
		ZPOPMIN z 99 | EXISTS z | ZADD z 1 a | EXPIRE z 100 | ZREM z a | TTL z | ZADD z 1 a | TTL z`},
	{name: "zset by other means", lines: `
		ZADD z 1 a 2 b | ZADD y 5 c | ZUNIONSTORE z 2 z y | ZRANGE z 0 -1 WITHSCORES | DEL z | ZRANGE z 0 -1 | ZADD z 3 n | ZRANGE z 0 -1 | SET z v | ZADD y 1 q
		DEL z | RENAME y z | ZRANGE z 0 -1 | ZRANGE y 0 -1 | ZINTERSTORE y 1 z | ZRANGE y 0 -1 | ZPOPMIN y | COPY z y REPLACE | ZRANGE y 0 -1 WITHSCORES | ZADD y 9 a
		ZCARD z | ZCARD y | ZMPOP 1 y MIN | ZRANGE y 0 -1 | GEOADD y 1 1 place | ZCARD y | UNLINK y | ZCARD y | ZADD y 1 a | FLUSHALL | ZCARD y | ZCARD z`},
	{name: "stored sets", lines: `
		ZUNIONSTORE z 1 none | EXISTS z | ZADD z 1 a | EXPIRE z 100 | ZUNIONSTORE z 1 z | TTL z | ZINTERSTORE z 2 z none | EXISTS z | SADD s a b | EXPIRE s 100
		SUNIONSTORE s s | TTL s | SCARD s | SINTERSTORE s s none | EXISTS s | SADD s a | SDIFFSTORE s s s | EXISTS s | SET s v | ZUNIONSTORE z 1 s | SUNIONSTORE x s`},
	{name: "zscan", lines: `
		ZADD z 1.5 a | ZSCAN z 0 | ZSCAN z 0 MATCH b* | ZSCAN z 0 MATCH a COUNT 3 | ZSCAN none 0`},
	{name: "zscan refuses", plain: true, lines: `
		ZADD z 1 a | ZSCAN z x | ZSCAN z | ZSCAN z 0 COUNT 0 | ZSCAN z 0 COUNT x | ZSCAN z 0 FOO 1 | ZSCAN z 0 MATCH`},
}

func TestRepliesAreThoseOfARealRedis(t *testing.T) {
	real := redistest.Start(t)
	s := start(t, embedded.Config{Addr: "127.0.0.1:0", Logger: testLogger(t)})
	rounding := sameWords(t, connect(t, real.Addr()))
	for _, seq := range sequences {
		for mode, run := range modes() {
			if seq.plain && (mode == "multi" || mode == "lua") {
				continue
			}
			t.Run(seq.name+"/"+mode, func(t *testing.T) {
				seq.now = time.Now()
				ours, theirs := connect(t, s.Addr()), connect(t, real.Addr())
				compare(t, run(ours, seq), run(theirs, seq), rounding)
			})
		}
	}
}

type step struct{ command, reply string }

// modes are the ways to send a sequence.
func modes() map[string]func(*wire, sequence) []step {
	return map[string]func(*wire, sequence) []step{
		"resp2": func(w *wire, seq sequence) []step { return runPlain(w, seq) },
		"resp3": func(w *wire, seq sequence) []step {
			w.do("HELLO", "3")
			return runPlain(w, seq)
		},
		"multi": func(w *wire, seq sequence) (steps []step) {
			clean(w)
			w.do("MULTI")
			lines := seq.commands()
			for _, line := range lines {
				w.do(seq.arguments(line)...)
			}
			w.send("EXEC")
			if head, err := w.in.ReadString('\n'); err != nil || head != fmt.Sprintf("*%d\r\n", len(lines)) {
				w.t.Fatalf("EXEC: %q, %v", head, err)
			}
			for _, line := range lines {
				steps = append(steps, step{line, w.read()})
			}
			return steps
		},
		"lua": func(w *wire, seq sequence) (steps []step) {
			clean(w)
			for _, line := range seq.commands() {
				script := []string{"EVAL", "return redis.pcall(unpack(ARGV))", "0"}
				steps = append(steps, step{line, w.do(append(script, seq.arguments(line)...)...)})
			}
			return steps
		},
	}
}

func clean(w *wire) {
	w.do("FLUSHALL")
	w.do("CONFIG", "SET", "notify-keyspace-events", "")
}

func runPlain(w *wire, seq sequence) (steps []step) {
	clean(w)
	for _, line := range seq.commands() {
		if key, ok := strings.CutPrefix(line, "@gone "); ok {
			w.awaitGone(key)
			continue
		}
		steps = append(steps, step{line, w.do(seq.arguments(line)...)})
	}
	return steps
}

func (w *wire) awaitGone(key string) {
	w.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); w.do("EXISTS", key) != ":0"; {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s did not expire", key)
		}
	}
}

func (seq sequence) commands() (lines []string) {
	for line := range strings.FieldsFuncSeq(seq.lines, func(r rune) bool { return r == '|' || r == '\n' }) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// arguments splits a line, where ' and " hold together what they enclose.
func (seq sequence) arguments(line string) (args []string) {
	line = strings.TrimPrefix(line, "~")
	for line != "" {
		quote := line[0]
		if quote != '\'' && quote != '"' {
			word, rest, _ := strings.Cut(line, " ")
			args, line = append(args, seq.moment(word)), strings.TrimSpace(rest)
			continue
		}
		word, rest, _ := strings.Cut(line[1:], string(quote))
		args, line = append(args, word), strings.TrimSpace(rest)
	}
	return args
}

// moment gives both servers the same one.
func (seq sequence) moment(word string) string {
	inner, ok := strings.CutPrefix(strings.TrimSuffix(word, "}"), "{")
	if !ok {
		return word
	}
	if offset, ok := strings.CutPrefix(inner, "ms"); ok {
		n, _ := strconv.ParseInt(offset, 10, 64)
		return fmt.Sprint(seq.now.UnixMilli() + n)
	}
	n, _ := strconv.ParseInt(strings.TrimPrefix(inner, "s"), 10, 64)
	return fmt.Sprint(seq.now.Unix() + n)
}

func compare(t *testing.T, ours, theirs []step, normal func(string) string) {
	t.Helper()
	for i, got := range ours {
		want := theirs[i]
		if near(got, want) {
			continue
		}
		if normal(got.reply) != normal(want.reply) {
			t.Errorf("%d: %s\n ours: %s\nredis: %s", i, got.command, got.reply, want.reply)
		}
	}
}

// near reports whether both replies are remaining times that differ by what
// the test took, at most.
func near(ours, theirs step) bool {
	within := 1
	switch {
	case strings.HasPrefix(ours.command, "~"):
		within = 2000
	case !strings.HasPrefix(ours.command, "TTL "):
		return false
	}
	x, err1 := strconv.Atoi(strings.TrimPrefix(ours.reply, ":"))
	y, err2 := strconv.Atoi(strings.TrimPrefix(theirs.reply, ":"))
	return err1 == nil && err2 == nil && x > 0 && y > 0 && max(x-y, y-x) <= within
}

// sameWords compares errors by their first word unless the real server is of
// the version whose words ours are.
func sameWords(t *testing.T, w *wire) func(string) string {
	t.Helper()
	if strings.Contains(w.do("INFO", "server"), "redis_version:7.0.") {
		return func(reply string) string { return reply }
	}
	return func(reply string) string {
		if strings.HasPrefix(reply, "-") {
			reply, _, _ = strings.Cut(reply, " ")
		}
		return reply
	}
}

func connect(t *testing.T, addr string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return newWire(t, conn)
}
