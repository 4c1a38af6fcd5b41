package wire_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

func TestIDsGoToTheSixteenthOfTheSlotsThatTheirTagIsIn(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0).Client(t)
	space := must(wire.NewSpace(cluster))(&world{T: t})
	seen := make(map[*wire.Store]bool)
	for i := range 200 {
		id := fmt.Sprint("order:", i)
		for _, id := range []string{id, "{" + id + "}:paid", "{}" + id, "}{" + id, id + "{", "\x00\xff" + id} {
			store := space.Of(id)
			seen[store] = true
			slot := cluster.ClusterKeySlot(t.Context(), id).Val()
			for _, key := range []string{store.Root(), store.Fuse(id), store.Class(id), store.OfTask("due", "mail")} {
				if in := cluster.ClusterKeySlot(t.Context(), key).Val(); in*wire.Partitions/16384 != slot*wire.Partitions/16384 || in != cluster.ClusterKeySlot(t.Context(), store.Root()).Val() {
					t.Fatalf("%q has the slot %d, and its key %q the slot %d", id, slot, key, in)
				}
			}
		}
	}
	if len(seen) != wire.Partitions || len(space.All()) != wire.Partitions {
		t.Errorf("ids are in %d of %d partitions", len(seen), wire.Partitions)
	}
}

// TestNoScriptRunsWhileItsSlotMoves: with keys on both servers, some would be missing
// wherever it runs.
func TestNoScriptRunsWhileItsSlotMoves(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0)
	space := must(wire.NewSpace(cluster.Client(t)))(&world{T: t})
	store := space.Of("a")
	ctx := t.Context()
	run := wire.Run{Task: "mail", ID: "a", RunID: "r", Lease: "r 1 n"}
	scripts := map[string]func() error{
		"arm": func() error {
			_, _, err := store.Arm(ctx, wire.Fail, 1, []wire.ArmJob{{ID: "b", Task: "mail", When: wire.When{In: time.Hour}}})
			return err
		},
		"arm, confirmed": func() error {
			_, _, _, err := store.ArmConfirmed(ctx, wire.Confirm{Replicas: 1, Timeout: time.Millisecond}, wire.Fail, 2,
				[]wire.ArmJob{{ID: "c", Task: "mail", When: wire.When{In: time.Hour}}})
			return err
		},
		"claim": func() error {
			_, err := store.Claim(ctx, wire.ClaimRequest{Node: "n", Seq: 1, Runs: 1, Bytes: 1})
			return err
		},
		"done":   func() error { _, err := store.Done(ctx, "mail", []wire.Run{run}); return err },
		"fail":   func() error { _, err := store.Fail(ctx, "mail", []wire.Failure{{Run: run}}); return err },
		"adopt":  func() error { _, err := store.Adopt(ctx, wire.ByEvent, 0, 1, []string{"a"}); return err },
		"sweep":  func() error { _, err := store.Sweep(ctx, wire.SweepStep{Node: "n"}); return err },
		"cancel": func() error { _, err := store.Cancel(ctx, "a"); return err },
		"move":   func() error { _, err := store.Move(ctx, "a", wire.When{}, false); return err },
		"get":    func() error { _, err := store.Get(ctx, "a"); return err },
		"exhume": func() error { _, err := store.Requeue(ctx, "mail", []string{"r"}); return err },
		"beat": func() error {
			_, err := store.Beat(ctx, wire.Pulse{Node: "n", First: true, Lease: time.Hour})
			return err
		},
		"reap": func() error { _, err := store.Reap(ctx, "n", ""); return err },
		"page": func() error { _, err := store.Page(ctx, wire.Pending, "mail", wire.Place{}, 1); return err },
		"hit":  func() error { _, err := store.Hit(ctx, wire.NewToken(), []wire.Hit{{ID: "a", By: 1}}); return err },
		"define": func() error {
			_, _, err := store.Define(ctx, must(wire.Threshold{ID: "a", Task: "mail", Count: 1, Within: time.Hour}.Complete(time.Hour))(&world{T: t}))
			return err
		},
		"undefine": func() error { _, err := store.Undefine(ctx, "a"); return err },
	}
	if _, _, err := store.Arm(ctx, wire.Fail, 0, []wire.ArmJob{{ID: "a", Task: "mail", When: wire.When{In: time.Hour}}}); err != nil {
		t.Fatal(err)
	}
	slot := int(cluster.Client(t).ClusterKeySlot(ctx, store.Root()).Val())
	from := cluster.Master(slot)
	masters := cluster.Masters()
	to := masters[(slices.Index(masters, from)+1)%len(masters)]
	source, target := &world{T: t, rdb: from.Client(t)}, &world{T: t, rdb: to.Client(t)}
	target.setSlot(slot, "IMPORTING", source.rdb.ClusterMyID(ctx).Val())
	source.setSlot(slot, "MIGRATING", target.rdb.ClusterMyID(ctx).Val())

	before := source.dump() + target.dump()
	var running sync.WaitGroup
	for name, script := range scripts {
		running.Go(func() {
			if err := script(); !errors.Is(err, wire.ErrMoving) {
				t.Errorf("%s: %v, want ErrMoving", name, err)
			}
		})
	}
	running.Wait()
	if after := source.dump() + target.dump(); after != before {
		t.Errorf("held\n%s\nbefore, and after\n%s", before, after)
	}
}

func (w *world) setSlot(slot int, how, node string) {
	w.Helper()
	if err := w.rdb.Do(w.Context(), "CLUSTER", "SETSLOT", slot, how, node).Err(); err != nil {
		w.Fatal(err)
	}
}
