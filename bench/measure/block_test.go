package measure

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/bench/servers"
)

func startRedis(t *testing.T) *servers.Server {
	t.Helper()
	s, err := servers.Start(t.Context(), t.TempDir(), "redis")
	if errors.Is(err, servers.ErrMissing) && os.Getenv("KEYFUSE_REQUIRE_SERVERS") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// While Redis is held up a PING is sent each millisecond, and each waits for what is left.
func TestWatchBlockSeesAllThatABlockHoldsUp(t *testing.T) {
	redisServer := startRedis(t)
	client := redis.NewClient(&redis.Options{Addr: redisServer.Addr})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	watch, err := stores{redisServer}.watchBlock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer watch.end()
	from := time.Now()
	if err := client.Eval(t.Context(), "for i = 1, 2e7 do end return 1", nil).Err(); err != nil {
		t.Fatal(err)
	}
	to := time.Now()
	b, err := watch.between(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	held := to.Sub(from)
	if b.longest < held/2 || b.longest > held || b.ping < held*8/10 {
		t.Errorf("%s by LATENCY, %s by a PING: want about %s", b.longest, b.ping, held)
	}
	took := slices.Sorted(slices.Values(watch.pings.between(from, to)))
	if want := int(held / pingEvery); len(took) < want*8/10 || len(took) > want*12/10+1 {
		t.Errorf("%d PINGs were sent in %s: want one each %s", len(took), held, pingEvery)
	}
	if half := took[len(took)/2]; half < held*3/10 {
		t.Errorf("half of them took %s or less, in a block of %s", half, held)
	}
}

// What is due before a burst, or after its last run, says nothing of it.
func TestPingsCountWhileTheBurstGoesOn(t *testing.T) {
	sent := make([]time.Time, 5)
	answered := make([]time.Time, len(sent))
	for i := range sent {
		sent[i] = time.Unix(1000, int64(i)*int64(pingEvery))
		answered[i] = sent[i].Add(time.Duration(i))
	}
	p := &pings{sent: sent, answered: answered}
	if got := p.between(sent[0].Add(1), sent[4]); !slices.Equal(got, []time.Duration{1, 2, 3}) {
		t.Errorf("%v: want those from the second to the fourth", got)
	}
}

func TestP99(t *testing.T) {
	took := make([]time.Duration, 1000)
	for i := range took {
		took[i] = time.Duration(1000 - i)
	}
	if got := p99(took); got != 991 {
		t.Errorf("%d: 10 of 1000 may take longer", got)
	}
	if got := p99(nil); got != 0 {
		t.Errorf("%d of none", got)
	}
}

func TestPingsSayThatRedisHasEnded(t *testing.T) {
	redisServer := startRedis(t)
	p, err := startPings(redisServer.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := redisServer.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.end(); err == nil {
		t.Error("it has ended, and nobody noticed")
	}
}
