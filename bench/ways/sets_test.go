package ways

import (
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func TestFloorsOnlySchedule(t *testing.T) {
	for _, w := range All() {
		if !w.Floor {
			continue
		}
		t.Run(w.Name, func(t *testing.T) {
			instance := open(t, w, newEnv(t, w.Needs))
			ready := func() { t.Error("it says that it is ready to work") }
			if err := instance.Work(t.Context(), ready, nil); err == nil {
				t.Error("Work returned no error")
			}
		})
	}
}

func TestSetsMakesAKeyForEachJob(t *testing.T) {
	w := setsWay()
	env := newEnv(t, w.Needs)
	instance := open(t, w, env)
	if err := instance.Single(t.Context(), way.Jobs{Count: 10, First: time.Now()}, 3); err != nil {
		t.Fatal(err)
	}
	const all = 10 + bulkSize + 1
	if err := instance.Bulk(t.Context(), way.Jobs{From: 10, Count: all - 10, First: time.Now()}); err != nil {
		t.Fatal(err)
	}
	rdb := dial(env)
	defer rdb.Close() //nolint:errcheck // all was answered
	for n := range all {
		if got, err := rdb.Get(t.Context(), way.ID(n)).Result(); got != way.Payload || err != nil {
			t.Fatalf("job %d is %q, %v", n, got, err)
		}
	}
	if keys, err := rdb.DBSize(t.Context()).Result(); keys != all || err != nil {
		t.Errorf("%d keys, %v; want %d", keys, err, all)
	}
}
