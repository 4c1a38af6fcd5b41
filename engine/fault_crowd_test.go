package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/engine"
	"github.com/keyfuse-io/keyfuse/registry"
)

// Beside many keys with a TTL Redis tells of an expiry minutes late. A bare job
// is in the index by then.
func TestABareJobBesideManyKeysRunsOnTime(t *testing.T) {
	t.Parallel()
	onRedis(t, func(w *world) {
		n := w.start(tasks(map[string]registry.Func{"mail": nop}), engine.Config{})
		for from := 0; from < 100_000; from += 1000 {
			_, err := w.rdb.Pipelined(w.Context(), func(p redis.Pipeliner) error {
				for i := range 1000 {
					p.Set(w.Context(), fmt.Sprint("bg:", from+i), 1, 24*time.Hour)
				}
				return nil
			})
			if err != nil {
				w.Fatal(err)
			}
		}
		w.set("order:1", "order:1", 7*time.Second)
		w.set("class:order:1", "mail", 0)
		if f := n.fired(); f.Job.ID != "order:1" || f.Source != "index" || f.Late < 0 || f.Late > time.Second {
			w.Errorf("fired %+v", f)
		}
	})
}
