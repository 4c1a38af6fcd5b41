package embedded

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidwall/btree"
)

const (
	databases = 16
	// longestNap bounds how late expiry notices that the wall clock was set,
	// or that the machine slept.
	longestNap = 10 * time.Second
	// noDeadline lies after every deadline, in Unix ms.
	noDeadline = 1<<63 - 1
	// lastDeadline is the latest that the engine can hold: a duration since
	// 1970, which ends in the year 2262.
	lastDeadline = int64((1<<63 - 1) / time.Millisecond)
)

// deadlines is an index of all keys with a TTL by their deadline in Unix ms.
// The engine holds the truth, as the TTL of the key.
type deadlines struct {
	order *btree.BTreeG[deadline]
	of    map[dbKey]int64
}

type deadline struct {
	at int64
	dbKey
}

func newDeadlines() *deadlines {
	less := func(a, b deadline) bool {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.db, b.db), cmp.Compare(a.key, b.key)) < 0
	}
	return &deadlines{
		order: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}),
		of:    map[dbKey]int64{},
	}
}

func (d *deadlines) set(k dbKey, at int64) {
	d.remove(k)
	d.of[k] = at
	d.order.Set(deadline{at, k})
}

func (d *deadlines) remove(k dbKey) {
	if at, ok := d.of[k]; ok {
		delete(d.of, k)
		d.order.Delete(deadline{at, k})
	}
}

// next returns the earliest deadline, and noDeadline if there is none.
func (d *deadlines) next() int64 {
	if first, ok := d.order.Min(); ok {
		return first.at
	}
	return noDeadline
}

// expire removes keys as their time comes, until Close.
func (s *Server) expire() {
	timer := time.NewTimer(longestNap)
	defer timer.Stop()
	for {
		timer.Reset(s.expireAndRest())
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.done:
			return
		}
	}
}

// expireAndRest expires what is due and says how long nothing else will be.
func (s *Server) expireAndRest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = time.Now().UnixMilli()
	s.expireDue()
	s.armed = s.deadlines.next()
	if s.armed == noDeadline {
		return longestNap
	}
	// A key lives through the millisecond of its deadline.
	return min(time.Until(time.UnixMilli(s.armed+1)), longestNap)
}

// arm wakes expire if a deadline came that is earlier than it knows of.
func (s *Server) arm() {
	if s.deadlines.next() >= s.armed {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// expireDue removes all keys that are past their deadline, in its order. Like
// Redis it does so at no other moment than between commands: a script sees
// the clock stand still.
func (s *Server) expireDue() {
	for {
		first, ok := s.deadlines.order.Min()
		if !ok || first.at >= s.now {
			return
		}
		s.deadlines.remove(first.dbKey)
		db := s.engine.DB(first.db)
		// A blocking command may have removed the key unseen.
		if db.TTL(first.key) != time.Duration(first.at)*time.Millisecond {
			continue
		}
		db.Del(first.key)
		s.expired(first.dbKey)
	}
}

// expired tells the world that a key is gone.
func (s *Server) expired(k dbKey) {
	delete(s.zsets, k)
	s.announce(notifyExpired, "expired", k)
}

// reindex looks up the deadline of a key that a command touched, and expires
// the key if that is already past.
func (s *Server) reindex(c *call, key string) {
	k := dbKey{c.db, key}
	at := s.askInt(c, "PTTL", key)
	switch {
	case at < 0:
		s.deadlines.remove(k)
	case at < s.now:
		s.deadlines.remove(k)
		s.askInt(c, "DEL", key)
		s.expired(k)
	default:
		s.deadlines.set(k, at)
	}
}

// refresh forgets or looks up again what is known of each key that a command
// may have changed. Every command names the keys it changes.
func (s *Server) refresh(c *call) {
	for _, arg := range c.args {
		k := dbKey{c.db, arg}
		delete(s.zsets, k)
		if _, ok := s.deadlines.of[k]; ok {
			s.reindex(c, arg)
		}
	}
}

// forget drops all that is known of the databases for which drop is true.
func (s *Server) forget(drop func(db int) bool) {
	for k := range s.zsets {
		if drop(k.db) {
			delete(s.zsets, k)
		}
	}
	due := slices.Collect(func(yield func(dbKey) bool) {
		for k := range s.deadlines.of {
			if drop(k.db) && !yield(k) {
				return
			}
		}
	})
	for _, k := range due {
		s.deadlines.remove(k)
	}
}
