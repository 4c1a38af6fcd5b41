//go:build unix

package redistest

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
)

// BubbleAddr is the address of the Redis in a bubble. It is an IP address because
// go-redis would look up a name, which no bubble can do; nothing is there.
const BubbleAddr = "192.0.2.1:6379"

// Bubble is an embedded Redis in a bubble of fake time.
type Bubble struct{ server *embedded.Server }

// InBubble runs a test in a testing/synctest bubble, with a Redis of its own that
// lives in the bubble too: hours pass in no time.
func InBubble(t *testing.T, test func(t *testing.T, b *Bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := embedded.Start(embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		test(t, &Bubble{server})
	})
}

// Dial connects to the Redis in the bubble, whatever the address.
func (b *Bubble) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return b.server.Dial(ctx, network, addr)
}

// Client returns a client of the Redis in the bubble; as Server.Client otherwise.
func (b *Bubble) Client(t testing.TB, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	inBubble := func(o *redis.Options) {
		o.Dialer = b.Dial
		o.DialerRetries = 1 // a dial that waits to be made again outlives its client, and its bubble
	}
	return newClient(t, BubbleAddr, slices.Insert(opts, 0, inBubble))
}
