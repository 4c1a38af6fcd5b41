package faults

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// conn is how to reach the Redis under test, whatever it is made of. Daemons get
// theirs as JSON.
type conn struct {
	Addrs    []string // one server; or the sentinels, or some nodes of the cluster
	Master   string   // the name that sentinels know it by
	Cluster  bool
	Username string
	Password string
	// Via says through which proxy an address is reached.
	Via map[string]string
	// Once makes each command once: go-redis repeats it otherwise if it gets no
	// answer, and a bare INCR would then count twice.
	Once bool
}

// open connects as the daemon of cmd/keyfuse does.
func (c conn) open() redis.UniversalClient {
	retries := 0 // go-redis's own default
	if c.Once {
		retries = -1
	}
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: c.Addrs, MasterName: c.Master, IsClusterMode: c.Cluster,
		Username: c.Username, Password: c.Password,
		Dialer: c.dial, ContextTimeoutEnabled: true, MaxRetries: retries,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

func (c conn) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	return dialer.DialContext(ctx, network, cmp.Or(c.Via[addr], addr))
}
