package record_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/record"
)

func open(t *testing.T, file string, jobs int) *record.Record {
	t.Helper()
	r, err := record.Open(file, jobs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// What one process writes, another one reads.
func TestRecordIsShared(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	reads, writes := open(t, file, 3), open(t, file, 3)
	first, again := time.Unix(100, 1), time.Unix(200, 2)

	writes.Ready()
	writes.StartAt(1, first)
	writes.StartAt(1, again)
	writes.StartAt(2, first)
	writes.End(1)
	writes.End(1)

	if w, s, e := reads.Workers(), reads.Started(), reads.Ended(); w != 1 || s != 2 || e != 1 {
		t.Errorf("%d workers, %d started, %d ended: want 1, 2, 1", w, s, e)
	}
	s := &reads.Slots()[1]
	if !s.First().Equal(first) || !s.Last().Equal(again) || s.Starts() != 2 || s.Done().IsZero() {
		t.Errorf("job 1: %v to %v, %d starts, done %v", s.First(), s.Last(), s.Starts(), s.Done())
	}
	if s := &reads.Slots()[0]; !s.First().IsZero() || !s.Last().IsZero() || !s.Done().IsZero() || s.Starts() != 0 {
		t.Error("job 0 has a trace, but was never started")
	}
}

func TestRunsWithoutASlotAreStrange(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "record"), 0)
	r.Start(0)
	r.End(0)
	r.Start(-1)
	if r.Strange() != 2 || r.Started() != 0 || r.Ended() != 0 || len(r.Slots()) != 0 {
		t.Errorf("%d strange, %d started, %d ended, %d slots: want 2, 0, 0, 0", r.Strange(), r.Started(), r.Ended(), len(r.Slots()))
	}
}

func TestOpenSaysWhatFails(t *testing.T) {
	if _, err := record.Open(filepath.Join(t.TempDir(), "none", "record"), 1); err == nil {
		t.Error("a record in a folder that is not there was opened")
	}
}
