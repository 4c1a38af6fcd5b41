package embedded

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Config says how to start a Server. The zero value is a server without a
// listener that logs nothing.
type Config struct {
	// Addr is the loopback address to listen on, as host:port. Empty means no
	// listener: only Dial connects. Port 0 lets the system pick one; see
	// Server.Addr.
	Addr string
	// Logger hears about clients that were cut off and about failures inside
	// the engine. Nil means silence.
	Logger *slog.Logger
}

// Server is a running embedded Redis. Stop it with Close.
type Server struct {
	log      *slog.Logger
	listener net.Listener // nil without an address
	engine   *miniredis.Miniredis
	srv      *server.Server
	handlers map[string]handler
	seed     maphash.Seed // of the order in which ZSCAN walks

	passing atomic.Pointer[server.Peer] // see pass
	waiting sync.Map                    // introduction token → *client
	clients sync.Map                    // *server.Peer → *client
	wg      sync.WaitGroup              // every goroutine of this server
	done    chan struct{}
	wake    chan struct{} // capacity 1: a deadline came before the armed one

	// mu makes the server run one command at a time, as Redis does. It guards
	// all that follows. Nothing waits for a network while holding it.
	mu        sync.Mutex
	closed    bool
	links     map[*link]struct{}
	lastID    int
	asker     *asker
	validator *server.Peer // see check
	now       int64        // Unix ms: the clock of the running command
	armed     int64        // Unix ms: when expire wakes by itself
	scriptDB  int          // the database of the running script
	deadlines *deadlines
	zsets     map[dbKey]*zset
	blocked   map[dbKey]bool // sorted sets that are never mirrored
	channels  topics
	patterns  topics
	notify    notifyFlags
	hardLimit int // bytes a subscriber may have unread before it is cut off
}

// dbKey names a key in one of the databases.
type dbKey struct {
	db  int
	key string
}

// Start starts a server. It fails if cfg.Addr is no loopback address or
// cannot be listened on.
func Start(cfg Config) (*Server, error) {
	s := newServer(cfg.Logger)
	if cfg.Addr != "" {
		ln, err := listen(cfg.Addr)
		if err != nil {
			return nil, err
		}
		s.listener = ln
	}
	if err := s.startEngine(); err != nil {
		return nil, errors.Join(err, s.stopListening())
	}
	s.wg.Go(s.expire)
	if s.listener != nil {
		s.wg.Go(s.accept)
	}
	return s, nil
}

func newServer(log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		log:       log,
		engine:    miniredis.NewMiniRedis(),
		handlers:  handlers(),
		seed:      maphash.MakeSeed(),
		done:      make(chan struct{}),
		wake:      make(chan struct{}, 1),
		links:     map[*link]struct{}{},
		asker:     newAsker(),
		deadlines: newDeadlines(),
		zsets:     map[dbKey]*zset{},
		blocked:   map[dbKey]bool{},
		channels:  topics{},
		patterns:  topics{},
		notify:    notifyKeyevent | notifyExpired,
		hardLimit: subscriberLimit,
	}
}

// startEngine starts miniredis without a listener. Its first Dial does that;
// the connection itself is of no use.
func (s *Server) startEngine() error {
	conn, err := s.engine.Dial()
	if err != nil {
		return fmt.Errorf("starting the embedded redis: %w", err)
	}
	s.srv = s.engine.Server()
	s.srv.SetPreHook(s.hook)
	s.validator = newPeer(nil)
	s.validator.Ctx = s.newContext()
	return conn.Close()
}

func listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("embedded redis address: %w; use 127.0.0.1:<port>", err)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("embedded redis address %q is not loopback: it has no passwords; use 127.0.0.1:<port>, or a real redis", addr)
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("embedded redis cannot listen: %w", err)
	}
	return ln, nil
}

// Addr is the address the server listens on, as host:port, and empty if it
// does not listen.
func (s *Server) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Dial returns an in-memory connection to the server, whatever network and
// addr say. It is made for the Dialer of go-redis and works in a
// testing/synctest bubble if Start was called there too. It fails once the
// server is closed or ctx is done.
func (s *Server) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ours, theirs := net.Pipe()
	if err := s.attach(theirs); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("embedded redis %s: %w", addr, err)}
	}
	return ours, nil
}

// Close cuts all connections, drops all data and returns when every goroutine
// of the server has ended. Closing again does nothing.
func (s *Server) Close() error {
	if !s.shut() {
		return nil
	}
	err := s.stopListening()
	s.engine.Close()
	s.wg.Wait()
	return err
}

// shut lets no further command run and reports whether it was the first.
func (s *Server) shut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	close(s.done)
	for l := range s.links {
		l.cut()
	}
	return true
}

func (s *Server) stopListening() error {
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("embedded redis: accept failed", "err", err)
			continue
		}
		if err := s.attach(conn); err != nil {
			return
		}
	}
}
