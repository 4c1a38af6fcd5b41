package embedded

import (
	"fmt"
	"strings"
)

// notifyFlags is the set of classes that notify-keyspace-events switches on.
type notifyFlags uint

// The classes, in the order in which CONFIG GET names them.
const notifyLetters = "g$lshzxetdnKEm"

const (
	notifyExpired  = notifyFlags(1) << 6
	notifyNew      = notifyFlags(1) << 10
	notifyKeyspace = notifyFlags(1) << 11
	notifyKeyevent = notifyFlags(1) << 12
	notifyAll      = notifyNew - 1 // what A stands for
)

// parseNotify reads the value of notify-keyspace-events.
func parseNotify(value string) (notifyFlags, bool) {
	var flags notifyFlags
	for _, letter := range value {
		i := strings.IndexRune(notifyLetters, letter)
		switch {
		case letter == 'A':
			flags |= notifyAll
		case i < 0:
			return 0, false
		default:
			flags |= 1 << i
		}
	}
	return flags, true
}

// String is what CONFIG GET answers.
func (f notifyFlags) String() string {
	text := ""
	if f&notifyAll == notifyAll {
		text, f = "A", f&^notifyAll
	}
	for i, letter := range notifyLetters {
		if f&(1<<i) != 0 {
			text += string(letter)
		}
	}
	return text
}

// notifyExpired publishes the event of a key that expired. These are the only
// events that the server knows.
func (s *Server) notifyExpired(k dbKey) {
	if s.notify&notifyExpired == 0 {
		return
	}
	if s.notify&notifyKeyspace != 0 {
		s.publish(fmt.Sprintf("__keyspace@%d__:%s", k.db, k.key), "expired")
	}
	if s.notify&notifyKeyevent != 0 {
		s.publish(fmt.Sprintf("__keyevent@%d__:expired", k.db), k.key)
	}
}
