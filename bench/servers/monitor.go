package servers

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// monitor counts the commands that clients send to a Redis, as MONITOR shows them.
// INFO would count those within scripts too, which cost no round trip.
type monitor struct {
	conn    net.Conn
	reading sync.WaitGroup
	// Once reading has ended:
	count int64
	whole bool // all is in it
}

// maxLine is how long a command may be, as MONITOR shows it, in bytes. Behind a longer
// one nothing would be counted.
const maxLine = 64 << 20

func startMonitor(ctx context.Context, addr string) (*monitor, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	m := &monitor{conn: conn}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil || !lines.Scan() { // +OK
		m.close()
		return nil, err
	}
	m.reading.Go(func() {
		for !m.whole && lines.Scan() {
			m.whole = strings.Contains(lines.Text(), lastWord)
			if !m.whole && isSent(lines.Text()) {
				m.count++
			}
		}
	})
	return m, nil
}

// isSent says whether a line shows a command that a client has sent: of one within a
// script it says `[0 lua]`.
func isSent(line string) bool {
	_, from, ok := strings.Cut(line, " [")
	from, _, _ = strings.Cut(from, "]")
	return ok && !strings.HasSuffix(from, " lua")
}

// lastWord is in the command that ends the counting.
const lastWord = "keyfuse-bench-has-counted"

// lastWithin is how long it may take until what was sent before is shown.
const lastWithin = 30 * time.Second

// counted ends the counting when all that was sent before is in it.
func (m *monitor) counted(ctx context.Context, client *redis.Client) (int64, error) {
	err := client.Echo(ctx, lastWord).Err()
	if err == nil {
		err = m.conn.SetReadDeadline(time.Now().Add(lastWithin))
	}
	if err == nil {
		m.reading.Wait()
	}
	m.close()
	if err == nil && !m.whole {
		err = errors.New("MONITOR ended before all was shown")
	}
	return m.count, err
}

func (m *monitor) close() {
	_ = m.conn.Close() // which ends the reading
	m.reading.Wait()
}
