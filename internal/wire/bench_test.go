package wire_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// What the scripts cost on a Redis with the configuration that is shipped: figures
// are of one job.

func benchStore(b *testing.B) *wire.Store {
	server := redistest.StartConfig(b, "../../redis.conf")
	store, err := wire.NewStore(server.Client(b), 0)
	if err != nil {
		b.Fatal(err)
	}
	return store
}

// BenchmarkArm arms jobs that are due in a day, as many a call as go into one.
func BenchmarkArm(b *testing.B) {
	store := benchStore(b)
	b.ReportAllocs()
	before := cpuOf(b, store)
	armMany(b, store, b.N, wire.When{In: 24 * time.Hour})
	b.ReportMetric((cpuOf(b, store)-before)*1e9/float64(b.N), "redis-ns/op")
}

// BenchmarkClaimAndDone claims and settles jobs whose fuses have just run out.
func BenchmarkClaimAndDone(b *testing.B) {
	store := benchStore(b)
	if _, err := store.Beat(b.Context(), wire.Pulse{Node: "n", First: true, Lease: time.Hour}); err != nil {
		b.Fatal(err)
	}
	due := time.Now().Add(time.Duration(b.N)*20*time.Microsecond + 100*time.Millisecond)
	armMany(b, store, b.N+1, wire.When{At: due})
	seq := int64(0)
	take := func(most int) int {
		seq++
		claimed, err := store.Claim(b.Context(), wire.ClaimRequest{
			Node: "n", Seq: seq, Runs: most, Bytes: 1 << 20, MaxPayload: 1 << 20, Tasks: []wire.Want{{Task: "mail", Runs: most}},
		})
		if err == nil && len(claimed.Runs) > 0 {
			_, err = store.Done(b.Context(), "mail", claimed.Runs)
		}
		if err != nil {
			b.Fatal(err)
		}
		return len(claimed.Runs)
	}
	for take(1) == 0 { // until they are due
	}
	b.ReportAllocs()
	before := cpuOf(b, store)
	b.ResetTimer()
	for left := b.N; left > 0; {
		left -= take(min(left, 250))
	}
	b.StopTimer()
	b.ReportMetric((cpuOf(b, store)-before)*1e9/float64(b.N), "redis-ns/op")
}

// cpuOf is the CPU time of Redis's main thread so far, in seconds.
func cpuOf(b *testing.B, store *wire.Store) float64 {
	info := store.Redis().InfoMap(b.Context(), "cpu").Val()["CPU"]
	sum := 0.0
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += seconds
	}
	return sum
}

func armMany(b *testing.B, store *wire.Store, n int, when wire.When) {
	payload := []byte(`{"order":42,"customer":"c-1234567890","action":"cancel","n":1}  `)
	jobs := make([]wire.ArmJob, 0, wire.MaxArm)
	for i := range n {
		jobs = append(jobs, wire.ArmJob{ID: fmt.Sprintf("order:%014d", i), Task: "mail", Payload: payload, When: when})
		if len(jobs) == cap(jobs) || i == n-1 {
			if _, _, err := store.Arm(b.Context(), wire.Fail, int64(i), jobs); err != nil {
				b.Fatal(err)
			}
			jobs = jobs[:0]
		}
	}
}
