package embedded

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// introduction is the first command of every connection. No client sends or
// sees it: it tells which peer of the engine belongs to which link, which the
// engine does not say.
const introduction = "KEYFUSE.INTRODUCTION"

// client is one connection.
type client struct {
	id   int
	peer *server.Peer
	link *link
	db   int
	tx   *transaction // nil outside MULTI
	// What it is subscribed to.
	channels, patterns map[string]struct{}
}

func (c *client) subscriptions() int { return len(c.channels) + len(c.patterns) }

// attach makes conn a client of the server.
func (s *Server) attach(conn net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("%w (%w)", net.ErrClosed, conn.Close())
	}
	s.lastID++
	c := &client{id: s.lastID, channels: map[string]struct{}{}, patterns: map[string]struct{}{}}
	token := rand.Text()
	c.link = newLink(conn, []string{introduction, token}, func(unread int) {
		s.log.Warn("embedded redis: cut off a client that does not read", "client", c.id, "unread_bytes", unread)
	})
	s.waiting.Store(token, c)
	s.links[c.link] = struct{}{}
	s.wg.Go(func() { s.pump(c.link) })
	s.srv.ServeConn(c.link)
	return nil
}

func (s *Server) pump(l *link) {
	l.pump()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, l)
}

// hook is called by the engine before each command, from a client or from
// Lua, and says whether the command is done.
func (s *Server) hook(peer *server.Peer, name string, args ...string) bool {
	if s.passing.CompareAndSwap(peer, nil) {
		return false
	}
	if c, ok := s.clients.Load(peer); ok {
		return s.serve(&call{peer: peer, client: c.(*client), name: name, args: args})
	}
	if name == introduction && s.introduce(peer, args) {
		return true
	}
	// A peer of no client is a script's: this goroutine runs EVAL for a
	// client and holds both our lock and the engine's.
	s.execute(&call{peer: peer, db: s.scriptDB, name: name, args: args})
	return true
}

func (s *Server) introduce(peer *server.Peer, args []string) bool {
	found, ok := s.waiting.LoadAndDelete(strings.Join(args, ""))
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := found.(*client)
	c.peer = peer
	peer.Ctx = s.newContext()
	peer.OnDisconnect(func() { s.leave(c) })
	s.clients.Store(peer, c)
	return true
}

func (s *Server) leave(c *client) {
	s.clients.Delete(c.peer)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels.drop(c, c.channels)
	s.patterns.drop(c, c.patterns)
}

// serve runs a client's command.
func (s *Server) serve(c *call) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.peer.Close()
		return true
	}
	done = true // even after a panic
	defer s.recover(c)
	c.db = c.client.db
	s.now = time.Now().UnixMilli()
	s.expireDue()
	if c.blocks() && c.client.tx == nil && !c.confined() {
		// It may wait for long, so it runs without the lock.
		s.neverMirror(c)
		return false
	}
	s.scriptDB = c.db
	s.execute(c)
	c.peer.Flush()
	s.arm()
	return true
}

// recover turns a panic in the engine into an error for the one client. A
// command panics while it holds the engine's lock, and would keep it.
func (s *Server) recover(c *call) {
	cause := recover()
	if cause == nil {
		return
	}
	s.passing.Store(nil)
	s.asker = newAsker()
	s.engine.TryLock()
	s.engine.Unlock()
	s.log.Error("embedded redis: a command failed", "command", c.name, "panic", cause, "stack", string(debug.Stack()))
	c.peer.WriteError("ERR internal error of the embedded server")
	c.peer.Flush()
}

// execute answers a command, be it a client's, a script's or one of a
// transaction.
func (s *Server) execute(c *call) {
	h, ok := s.handlers[c.name]
	switch {
	case c.queues():
		s.enqueue(c)
	case c.confined():
		c.peer.WriteError(fmt.Sprintf("ERR Can't execute '%s': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT are allowed in this context", strings.ToLower(c.name)))
	case c.client == nil && (c.blocks() || c.needsClient()):
		c.peer.WriteError("ERR This Redis command is not allowed from script")
	case ok:
		h(s, c)
	case !s.srv.IsRegisteredCommand(c.name):
		c.peer.WriteError(c.unknown())
	default:
		s.passWrite(c)
	}
}

func (c *call) unknown() string {
	var quoted strings.Builder
	for _, arg := range c.args[:min(len(c.args), 20)] {
		quoted.WriteString(fmt.Sprintf("'%s' ", arg[:min(len(arg), 128)]))
	}
	return fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", c.name, quoted.String())
}

// passWrite lets the engine run a command. If that may have changed keys, all
// that is known of keys it names is looked at again.
func (s *Server) passWrite(c *call) {
	s.pass(c, c.name, c.args...)
	if !s.srv.IsReadOnlyCommand(c.name) {
		s.refresh(c)
	}
}

func (s *Server) passOnly(c *call) { s.pass(c, c.name, c.args...) }

// pass lets the engine run a command and reply to the caller.
func (s *Server) pass(c *call, name string, args ...string) {
	s.dispatch(c.peer, name, args...)
}

// ask lets the engine run a command as the caller would, in its database and
// under the locks it holds, and returns the reply: an int, a string, a
// server.Simple, nil, or a []any of these.
func (s *Server) ask(c *call, name string, args ...string) (any, error) {
	a := s.asker
	a.reply.Reset()
	a.peer.Ctx = c.peer.Ctx
	s.dispatch(a.peer, name, args...)
	a.peer.Flush()
	a.reader.Reset(&a.reply)
	return server.ParseReply(a.reader)
}

// askInt is ask for a command that replies with a number.
func (s *Server) askInt(c *call, name string, args ...string) int64 {
	reply, _ := s.ask(c, name, args...)
	n, _ := reply.(int)
	return int64(n)
}

// asker is the peer with which the server asks the engine. One is enough:
// what is asked asks nothing.
type asker struct {
	peer   *server.Peer
	reply  bytes.Buffer
	reader *bufio.Reader
}

func newAsker() *asker {
	a := &asker{}
	a.peer, a.reader = newPeer(&a.reply), bufio.NewReader(&a.reply)
	return a
}

// dispatch runs a command in the engine, where the hook lets it through.
func (s *Server) dispatch(peer *server.Peer, name string, args ...string) {
	s.passing.Store(peer)
	s.srv.Dispatch(peer, append([]string{name}, args...))
}

func newPeer(w io.Writer) *server.Peer {
	if w == nil {
		w = io.Discard
	}
	return server.NewPeer(bufio.NewWriter(w))
}

// newContext returns the engine's state of a new connection. The engine makes
// one for a peer that has none. It may not be called for a script.
func (s *Server) newContext() any {
	peer := newPeer(nil)
	s.dispatch(peer, "PING")
	return peer.Ctx
}
