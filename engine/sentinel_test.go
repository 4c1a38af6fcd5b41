package engine_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// onSentinel runs a test on a master with a replica, under three sentinels.
func onSentinel(t *testing.T, test func(w *world, s *redistest.Sentinel)) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1, 3)
	w := &world{T: t, span: 200 * time.Millisecond, lease: 2 * time.Second, real: true}
	w.open = func() redis.UniversalClient {
		return s.Client(t, func(o *redis.FailoverOptions) { o.ContextTimeoutEnabled = true })
	}
	w.connect(client.Config{})
	test(w, s)
}

func TestSentinelReplacesAKilledMasterAndNothingConfirmedIsLost(t *testing.T) {
	onSentinel(t, func(w *world, s *redistest.Sentinel) {
		w.survives(func() {
			old := s.Master()
			old.Kill()
			s.AwaitMaster(old)
			old.Restart() // there is no other replica to confirm anything
			s.AwaitOK()
		})
	})
}

func TestSentinelDemotesAMasterThatLivesOnAndNothingConfirmedIsLost(t *testing.T) {
	onSentinel(t, func(w *world, s *redistest.Sentinel) {
		w.survives(func() {
			s.Failover()
			s.AwaitOK()
		})
	})
}

func TestSentinelReplacesAFrozenMasterThatComesBackAndNothingConfirmedIsLost(t *testing.T) {
	onSentinel(t, func(w *world, s *redistest.Sentinel) {
		w.survives(func() {
			old := s.Master()
			old.Pause()
			s.AwaitMaster(old)
			old.Resume() // as a master, until a sentinel tells it otherwise
			s.AwaitOK()
		})
	})
}

func TestSentinelReplicaThatIsAwayConfirmsWhenItIsBack(t *testing.T) {
	onSentinel(t, func(w *world, s *redistest.Sentinel) {
		replica := s.Servers[1]
		w.confirmsLater("frozen", replica.Pause, replica.Resume)
		w.confirmsLater("stopped", replica.Stop, replica.Restart)
	})
}
