package doctor

import (
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

// awaitInfo waits until INFO has a line.
func awaitInfo(t *testing.T, rdb *redis.Client, line string) {
	t.Helper()
	for {
		info, err := rdb.Info(t.Context(), "replication").Result()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info, line) {
			return
		}
	}
}

func TestReplicasMustBeAsManyAsAreWaitedFor(t *testing.T) {
	t.Parallel()
	s, replica := redistest.Start(t, "--repl-diskless-sync-delay", "0"), redistest.Start(t)
	rdb := s.Client(t)
	want(t, Run(t.Context(), rdb, Options{}), "replicas", OK, "none is asked for")
	want(t, Run(t.Context(), rdb, Options{Sentinel: true}), "replicas", Warn, "nobody takes over")
	want(t, Run(t.Context(), rdb, Options{WaitReplicas: 1}), "replicas", Fail, "redis.wait_replicas is 1, and 0 replicas are in step", "to 0")

	host, port, _ := net.SplitHostPort(s.Addr())
	set(t, replica.Client(t), "REPLICAOF", host, port)
	awaitInfo(t, rdb, "state=online")
	want(t, Run(t.Context(), rdb, Options{Sentinel: true, WaitReplicas: 1}), "replicas", OK, "1 replica is in step")
	want(t, Run(t.Context(), rdb, Options{WaitReplicas: 2}), "replicas", Fail, "1 replica is in step", "to 1")

	set(t, rdb, "ACL", "SETUSER", "hasty", "on", ">p", "~*", "&*", "+@all", "-wait")
	hasty := s.Client(t, func(o *redis.Options) { o.Username, o.Password = "hasty", "p" })
	want(t, Run(t.Context(), hasty, Options{WaitReplicas: 1}), "permissions", Fail, "lacks +wait")
	want(t, Run(t.Context(), hasty, Options{}), "permissions", OK)
}

func TestAReplicaThatLagsIsNotInStep(t *testing.T) {
	t.Parallel()
	s := &server{exam: &exam{opts: Options{}, space: spaceOf(t, redis.NewClient(&redis.Options{}))}}
	for _, c := range []struct {
		line, trouble string
		status        Status
	}{
		{"ip=10.0.0.1,port=6379,state=online,offset=900,lag=1", "", OK},
		{"ip=10.0.0.1,port=6379,state=online,offset=900,lag=10", "10.0.0.1:6379 is silent for 10 s and 100 bytes behind", Warn},
		{"ip=10.0.0.1,port=6379,state=online,offset=1001,lag=99", "99 s and 0 bytes behind", Warn},
		{"ip=10.0.0.1,port=6379,state=wait_bgsave,offset=0,lag=0", "10.0.0.1:6379 is not in step yet (wait_bgsave)", Warn},
	} {
		s.info = map[string]string{"connected_slaves": "1", "master_repl_offset": "1000", "slave0": c.line}
		if got := s.replicas(t.Context()); got.Status != c.status || !strings.Contains(got.Detail, c.trouble) {
			t.Errorf("%s: %+v, want %s and %q", c.line, got, c.status, c.trouble)
		}
	}
}
