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
	notifyString   = notifyFlags(1) << 1
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

// announce publishes an event of a class, if both the class and a channel for
// it are switched on.
func (s *Server) announce(class notifyFlags, event string, k dbKey) {
	if s.notify&class == 0 {
		return
	}
	if s.notify&notifyKeyspace != 0 {
		s.publish(fmt.Sprintf("__keyspace@%d__:%s", k.db, k.key), event)
	}
	if s.notify&notifyKeyevent != 0 {
		s.publish(fmt.Sprintf("__keyevent@%d__:%s", k.db, event), k.key)
	}
}
