// Package wire is Keyfuse's format in Redis: the names of keys, the records in
// them, and the scripts that change them. Every change is one script, so that
// no crash leaves half of one; every script may be run again after its reply
// was lost. docs/wire-format.md says what other clients may rely on.
//
// Public, written by any Redis client:
//
//	<id>               string with a TTL: the fuse; its expiry is the due time
//	class:<id>         string: "<task>" or "<task> <payload>"
//
// Internal; what follows `keyfuse:` may change with the format's version:
//
//	keyfuse:format            the version, see Format
//	keyfuse:tasks             set of tasks that were ever indexed
//	keyfuse:paused            set of tasks that nobody may claim
//	keyfuse:due:<task>        zset id → due ms (+ quarters: how it was found)
//	keyfuse:running:<task>    hash "run attempt node at id" (a lease) → record (see Run)
//	keyfuse:retrying:<task>   zset run → next attempt ms
//	keyfuse:dead:<task>       zset run → died at ms
//	keyfuse:runs:<task>       hash run → record, of those that are retrying or dead
//	keyfuse:ids               zset, all scores 0: "id\0task run", to find those by id
//	keyfuse:nodes             zset node → end of its lease, ms
//	keyfuse:gone              set of nodes whose runs are being reaped
//	keyfuse:info              hash node → what it says of itself (JSON)
//	keyfuse:claims            hash node → what its last claim took, for a replay
//	keyfuse:answers:<n>       hash token → what arming answered, for a replay; one of
//	                          four, each for half a minute
//	keyfuse:thresholds        hash id or pattern → definition of a threshold
//	keyfuse:payloads          hash id or pattern → its payload, if it has one
//	keyfuse:patterns          set of those that are patterns
//	keyfuse:defined           rises whenever one of these three changes
//	keyfuse:windows           hash id → open window (see window.lua)
//	keyfuse:counts            hash id → its count as it was last seen
//	keyfuse:items:<id>        string: what the hits of an open window collected
//	keyfuse:open              hash id or pattern → its open windows
//	keyfuse:firings:<id>      list: the last firings of that id or pattern
//	keyfuse:counted           hash token → what a hit answered, for a replay
//	keyfuse:counted_until     zset token → until when, ms
//	keyfuse:idempotency:<n>   string with a TTL: what the HTTP API answered (package web)
//	keyfuse:flags             string: notification flags that Keyfuse added, and where
//	keyfuse:canary:<node>     string with a TTL: proves that events arrive
//	keyfuse:confirm           string with a TTL: a write for replicas to confirm
//	keyfuse:sweep             string: whose turn it is to sweep (see sweep.lua)
//	keyfuse:wake:<db>         pub/sub channel: a task whose earliest job changed
//
// A job is pending while it has a class key; claiming moves the value of that
// key into a run and so frees the id. A lease belongs to a node, not to a run:
// one heartbeat renews all of them, and when it stops all of the node's runs
// are free at once, which costs nothing a run.
package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Format is the version of everything under keyfuse: in Redis. In 1 a lease had no time
// and no id, and its record was elsewhere.
const Format = 2

// Limits of the format.
const (
	MaxID   = 512 // bytes of an id
	MaxTask = 128 // bytes of a task's name
)

// Errors of ids and tasks; what CheckID and CheckTask return wraps them.
var (
	ErrBadID   = errors.New("bad id")
	ErrBadTask = errors.New("bad task name")
)

// Names makes the names of keys. The zero value is for a Redis that is no
// cluster. There, all names of a partition carry its hash tag, such as {kf1o}, and
// so are in one slot: {kf1o}order:42, class:{kf1o}order:42, keyfuse:{kf1o}:tasks.
type Names struct{ tag string }

// Root begins the name of every internal key.
func (n Names) Root() string {
	if n.tag == "" {
		return "keyfuse:"
	}
	return "keyfuse:" + n.tag + ":"
}

// Fuse is the key whose expiry fires a job.
func (n Names) Fuse(id string) string { return n.tag + id }

// Class is the key that names a job's task.
func (n Names) Class(id string) string { return "class:" + n.tag + id }

// ClassPattern is a SCAN pattern for class keys of ids with a prefix.
func (n Names) ClassPattern(prefix string) string { return "class:" + n.tag + globEscape(prefix) + "*" }

// IDOfClass is the id whose class key this is, and whether it is one.
func (n Names) IDOfClass(key string) (string, bool) { return strings.CutPrefix(key, "class:"+n.tag) }

// IDOfFuse is the id whose fuse a key would be, and whether it can be one.
func (n Names) IDOfFuse(key string) (string, bool) {
	id, ok := strings.CutPrefix(key, n.tag)
	return id, ok && id != "" && len(id) <= MaxID && !IsInternal(key)
}

// Of is an internal key without a task, such as "nodes".
func (n Names) Of(kind string) string { return n.Root() + kind }

// OfTask is a task's internal key, such as "due".
func (n Names) OfTask(kind, task string) string { return n.Root() + kind + ":" + task }

// Wake is the channel on which nodes of one database hear of earlier jobs.
func (n Names) Wake(db int) string { return n.Root() + "wake:" + strconv.Itoa(db) }

// Counted is the channel on which Redis tells of keys that INCR, INCRBY, DECR or
// DECRBY changed, by a client or a script.
func (Names) Counted(db int) string { return "__keyevent@" + strconv.Itoa(db) + "__:incrby" }

// Expired is the channel on which Redis tells of expired keys of a database.
func (Names) Expired(db int) string { return "__keyevent@" + strconv.Itoa(db) + "__:expired" }

// IsInternal reports whether a key is one of ours or a mapping, and so can
// never be a job's fuse.
func IsInternal(key string) bool {
	return strings.HasPrefix(key, "keyfuse:") || strings.HasPrefix(key, "class:")
}

// CheckID says why an id can't be a job's, or nil.
func CheckID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: it is empty", ErrBadID)
	case len(id) > MaxID:
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrBadID, len(id), MaxID)
	case IsInternal(id):
		return fmt.Errorf("%w: %q begins with class: or keyfuse:, which are reserved", ErrBadID, id)
	}
	return nil
}

// CheckTask says why a name can't be a task's, or nil: 1 to 128 of the ASCII
// letters and digits and . _ : / - beginning with a letter or digit.
func CheckTask(name string) error {
	if name == "" || len(name) > MaxTask {
		return fmt.Errorf("%w: it has %d bytes, 1 to %d are allowed", ErrBadTask, len(name), MaxTask)
	}
	for i, c := range []byte(name) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("._:/-", rune(c))) {
			return fmt.Errorf("%w: %q may hold only letters, digits and . _ : / - and begins with a letter or digit", ErrBadTask, name)
		}
	}
	return nil
}

// ClassValue is what a class key holds.
func ClassValue(task string, payload []byte) string {
	if len(payload) == 0 {
		return task
	}
	return task + " " + string(payload)
}

// ParseClass splits the value of a class key: the first space ends the name,
// the rest is the payload, byte for byte.
func ParseClass(value string) (task string, payload []byte, err error) {
	task, rest, _ := strings.Cut(value, " ")
	if err := CheckTask(task); err != nil {
		return "", nil, err
	}
	return task, []byte(rest), nil
}

func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
