package servers

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// monitor counts the commands that clients send to a Redis, as MONITOR shows them.
// INFO would count those within scripts too, which cost no round trip.
type monitor struct {
	conn    net.Conn
	count   atomic.Int64
	reading sync.WaitGroup
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
		for lines.Scan() {
			if isSent(lines.Text()) {
				m.count.Add(1)
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

func (m *monitor) close() {
	_ = m.conn.Close() // which ends the reading
	m.reading.Wait()
}
