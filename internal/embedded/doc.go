// Package embedded is a Redis inside the process: miniredis, and what Keyfuse
// needs of a Redis beyond it. It keeps everything in memory and nothing when
// it stops. It is the only package that imports miniredis outside tests.
//
// # Promises
//
//   - TTLs run, on the wall clock and on the fake clock of a testing/synctest
//     bubble. A key is there through the millisecond of its deadline, and
//     afterwards no command sees it. While a script or a transaction runs, the
//     clock of expiry stands still.
//   - Each key that expires is announced on __keyevent@N__:expired, and on
//     __keyspace@N__:<key>, as notify-keyspace-events says (at the start: Ex).
//     On an idle server that is one millisecond after the deadline, in the
//     order of deadlines, and never before.
//   - Each INCR, INCRBY, DECR or DECRBY that succeeds, in a script or a
//     transaction too, is announced as incrby where $ is among the flags.
//   - CONFIG GET and SET, INFO, CLIENT and HELLO suit go-redis and redis-cli.
//   - Nothing walks over all keys. With 100,000 pending jobs, commands take
//     about as long as with 1,000.
//   - No client can stall or crash the server for others. One that does not
//     read is cut off: at 32 MiB if it is subscribed, as in Redis, else at 512.
//   - It listens on loopback only, for it has no passwords.
//
// # How
//
// miniredis calls a hook before each command, those of scripts included. The
// hook runs commands one at a time under Server.mu, and either answers them
// here or lets miniredis do so (serve.go, call.go). miniredis holds all data.
//
// TTLs: miniredis never counts them down. So a TTL it holds is a deadline,
// which it copies, moves and drops as it would a TTL (ttl.go). An ordered index
// of deadlines says what is due, and when to wake next (expire.go).
//
// Sorted sets: in miniredis they are maps that are sorted for every read. A
// mirror in a B-tree answers reads and decides what a write does; the write
// then goes to miniredis as plain ZADD or ZREM, so that DEL, TYPE, SCAN or
// RENAME need nothing from us. Any other command that may write drops the
// mirrors of the keys it names, and the next use rebuilds them (zset.go,
// zwrite.go, zread.go).
//
// MULTI queues commands here and runs them at EXEC (multi.go). Connections have
// an unbounded output buffer, as in Redis, so pub/sub never waits for a
// subscriber (link.go, pubsub.go). Requests are checked before miniredis reads
// them (request.go).
//
// # Known limits
//
//   - No other keyspace events than expired and incrby: of the class $, no set
//     and no append, and none of DEL.
//   - Deadlines end in the year 2262; later ones become that.
//   - Many commands also take integers with a plus sign or leading zeros.
//   - SCAN, HSCAN, SSCAN return all in one page. ZSCAN does not.
//   - Not there: hash field TTLs, SWAPDB, DUMP and RESTORE, ACL, FUNCTION,
//     ROLE, WAITAOF, DEBUG, MONITOR, CLIENT LIST, shard channels, inline
//     commands. Blocking commands work, but not inside MULTI; a sorted set that
//     one was called for is never mirrored again. Scripts cannot SELECT, MOVE,
//     or COPY to another database.
//   - Lua has cjson, but no struct, cmsgpack or bit; numbers above 10^14 turn
//     into strings in full; errors of scripts are worded otherwise. In cjson
//     null is nil, an empty table is a list, and a byte outside UTF-8 becomes
//     U+FFFD; tonumber takes no exponent; unpack ends at 5,000. An EVALSHA
//     costs about 0.3 ms and 0.2 MB of garbage; the more keys there are, the
//     more it costs to collect that: half as much again at 100,000 jobs.
//   - ZUNION, ZINTER, ZMPOP, BZPOP and ZRANDMEMBER sort the whole set, and print
//     scores in the shortest form, while all others print 17 digits.
//   - CONFIG SET changes notify-keyspace-events only.
package embedded
