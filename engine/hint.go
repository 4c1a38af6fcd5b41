package engine

import "sync"

// hint is a signal that coalesces: given any number of times before it is
// taken, it is taken once. Giving never waits.
type hint chan struct{}

func newHint() hint { return make(hint, 1) }

func (h hint) give() {
	select {
	case h <- struct{}{}:
	default:
	}
}

// maxInbox bounds the ids that wait to be adopted, in bytes with what Go needs
// to hold each. Beyond it ids are forgotten and a sweep finds them.
const (
	maxInbox   = 32 << 20
	idOverhead = 32
)

// inbox holds ids whose fuses were heard to expire. The receive loop puts them
// in and never waits; the adopter takes them out.
type inbox struct {
	filled hint

	mu    sync.Mutex
	ids   []string
	bytes int
	lost  bool
}

func newInbox() *inbox { return &inbox{filled: newHint()} }

func (b *inbox) add(id string) {
	b.mu.Lock()
	if b.bytes < maxInbox {
		b.ids = append(b.ids, id)
		b.bytes += len(id) + idOverhead
	} else {
		b.lost = true
	}
	b.mu.Unlock()
	b.filled.give()
}

// takeAll empties the inbox, and says whether ids were forgotten.
func (b *inbox) takeAll() (ids []string, lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids, lost = b.ids, b.lost
	b.ids, b.bytes, b.lost = nil, 0, false
	return ids, lost
}
