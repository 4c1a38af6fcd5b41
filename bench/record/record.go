// Package record keeps what a worker did in a file that its parent reads at the same
// time. What was written there outlives a kill -9, and writing costs no system call.
package record

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Slot is what is known of one job. Times are in Unix nanoseconds, 0 for never.
type Slot struct {
	first, last, done atomic.Int64
	starts            atomic.Int64
}

// First is when the job was first started, and Last when it was last started.
func (s *Slot) First() time.Time { return at(s.first.Load()) }

// Last is when the job was started last.
func (s *Slot) Last() time.Time { return at(s.last.Load()) }

// Done is when a run of it ended last.
func (s *Slot) Done() time.Time { return at(s.done.Load()) }

// Starts is how often it was started.
func (s *Slot) Starts() int { return int(s.starts.Load()) }

func at(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// Record is a file of slots, behind a header.
type Record struct {
	memory []byte
	head   *header
	slots  []Slot
}

type header struct {
	started atomic.Int64 // jobs that were started once or more
	ended   atomic.Int64 // jobs that have ended once or more
	ready   atomic.Int64 // workers that said so
	strange atomic.Int64 // runs of jobs that have no slot
	_       [32]byte
}

const (
	headSize = int(unsafe.Sizeof(header{}))
	slotSize = int(unsafe.Sizeof(Slot{}))
)

// Open maps a record of so many jobs, which it makes if there is none of the name.
func Open(file string, jobs int) (*Record, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := headSize + jobs*slotSize
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", file, err)
	}
	return &Record{
		memory: memory,
		head:   (*header)(unsafe.Pointer(&memory[0])),
		slots:  unsafe.Slice((*Slot)(unsafe.Add(unsafe.Pointer(&memory[0]), headSize)), jobs),
	}, nil
}

// Close ends the mapping; the file stays.
func (r *Record) Close() error { return syscall.Munmap(r.memory) }

// Start notes that a job's handler was called.
func (r *Record) Start(n int) { r.StartAt(n, time.Now()) }

// StartAt notes that a job's handler was called at a time.
func (r *Record) StartAt(n int, now time.Time) {
	if n < 0 || n >= len(r.slots) {
		r.head.strange.Add(1)
		return
	}
	s := &r.slots[n]
	s.last.Store(now.UnixNano())
	if s.starts.Add(1) == 1 {
		s.first.Store(now.UnixNano())
		r.head.started.Add(1)
	}
}

// End notes that a job's handler returned.
func (r *Record) End(n int) {
	if n >= 0 && n < len(r.slots) && r.slots[n].done.CompareAndSwap(0, time.Now().UnixNano()) {
		r.head.ended.Add(1)
	}
}

// Ready notes that a worker is ready.
func (r *Record) Ready() { r.head.ready.Add(1) }

// Workers is how many workers have said that they are ready.
func (r *Record) Workers() int { return int(r.head.ready.Load()) }

// Started is how many jobs were started once or more.
func (r *Record) Started() int { return int(r.head.started.Load()) }

// Ended is how many jobs have ended once or more.
func (r *Record) Ended() int { return int(r.head.ended.Load()) }

// Strange is how many runs there were of jobs that have no slot.
func (r *Record) Strange() int { return int(r.head.strange.Load()) }

// Slots are the jobs by their numbers. They change while a worker works.
func (r *Record) Slots() []Slot { return r.slots }
