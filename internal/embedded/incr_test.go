//go:build unix

package embedded_test

import (
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// counting are commands of which some count.
var counting = sequence{lines: `
	INCR a | INCRBY b 5 | DECR c | DECRBY d 2 | INCRBY zero 0
	RPUSH list x | SET text x | SET max 9223372036854775807
	INCR list | DECR text | INCR max | INCRBY e x | INCRBY e 1.5 | DECRBY e -9223372036854775808 | INCR | INCRBY e | INCR e e
	INCRBYFLOAT e 1 | HINCRBY hash f 1 | SET e 1 | APPEND e 1
	EVAL "redis.call('INCR', 'lua1') redis.pcall('INCR', 'list') return redis.call('DECRBY', 'lua2', 3)" 0
	EVAL "redis.call('INCR', 'lua3') redis.call('INCR', 'list') redis.call('INCR', 'lua4')" 0
	MULTI | INCR tx1 | INCR list | EVAL "return redis.call('INCR', 'tx2')" 0 | INCRBY tx3 x | DECR tx4 | EXEC
	MULTI | INCR never | DISCARD | MULTI | INCR never | NOSUCH | EXEC | WATCH a | INCR a | MULTI | INCR never | EXEC
	SELECT 3 | INCR three | EVAL "return redis.call('INCR', 'lua5')" 0 | MULTI | SELECT 4 | INCR four | EXEC`}

// counted are the database and the key of each that did.
const counted = "0:a 0:b 0:c 0:d 0:zero 0:lua1 0:lua2 0:lua3 0:tx1 0:tx2 0:tx4 0:a 3:three 3:lua5 4:four"

func TestCountersThatSucceedAnnounceItInOrder(t *testing.T) {
	for name, addr := range map[string]string{
		"redis":    redistest.Start(t).Addr(),
		"embedded": start(t, embedded.Config{Addr: "127.0.0.1:0"}).Addr(),
	} {
		t.Run(name, func(t *testing.T) {
			w, events := connect(t, addr), connect(t, addr)
			w.do("CONFIG", "SET", "notify-keyspace-events", "KE$")
			events.do("PSUBSCRIBE", "*")
			for _, line := range counting.commands() {
				w.do(counting.arguments(line)...)
			}
			w.do("PUBLISH", "end", "")
			for event := range strings.FieldsSeq(counted) {
				db, key, _ := strings.Cut(event, ":")
				equal(t, events.readIncrby(), "[$pmessage $* $__keyspace@"+db+"__:"+key+" $incrby]", "event")
				equal(t, events.readIncrby(), "[$pmessage $* $__keyevent@"+db+"__:incrby $"+key+"]", "event")
			}
			equal(t, events.readIncrby(), "[$pmessage $* $end $]", "last message")
		})
	}
}

// readIncrby reads the next message but those of events that only a real
// server announces.
func (w *wire) readIncrby() string {
	for {
		message := w.read()
		if strings.Contains(message, "__:incrby $") || strings.HasSuffix(message, " $incrby]") || strings.Contains(message, " $end ") {
			return message
		}
	}
}
