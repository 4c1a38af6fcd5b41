// Package servers starts the servers that are compared, from Debian's packages, and
// stops exactly those again.
//
// A server listens on free loopback ports of its own, keeps its files in a folder of its
// own, and is stored there as durably as it is by default or, for redis, as the
// repository's redis.conf says. It ends when Stop is called and, on Linux, when the
// process that started it ends in any other way. Nothing that ran before is touched.
//
// What a server says of itself costs it something, so ask before and after what is
// measured, not while.
//
// CPU and resident memory are read from Linux's /proc.
package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

var (
	// ErrMissing means that a server's program is not installed; the error around it
	// names the program and its Debian package.
	ErrMissing = errors.New("not installed")
	// ErrUnknown means that a server can't tell what it was asked.
	ErrUnknown = errors.New("this server does not tell")
)

const (
	readyWithin = 60 * time.Second // RabbitMQ on a busy machine
	readyPoll   = 10 * time.Millisecond
	// portAttempts is how often other ports are tried, since another process may take
	// one between its being picked and its being bound.
	portAttempts = 3
)

// A program is one kind of server.
type program interface {
	// launch starts the processes of s, and sets its address.
	launch(ctx context.Context, s *Server) error
	// ready is nil once the server answers, and it is this one that does.
	ready(ctx context.Context, s *Server) error
	memory(ctx context.Context, s *Server) (int64, error)
	count(ctx context.Context) (counted func(context.Context) (int64, error), err error)
	reset(ctx context.Context) error
	longest(ctx context.Context) (time.Duration, error)
	// close ends the connections that ready opened, if it did.
	close()
}

// programs makes a program of each name.
func programs() map[string]func() program {
	return map[string]func() program{
		"redis":      func() program { return new(redisServer) },
		"postgres":   func() program { return new(postgresServer) },
		"rabbitmq":   func() program { return new(rabbitServer) },
		"beanstalkd": func() program { return new(beanstalkServer) },
	}
}

// Names are the names that Start knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(programs())) }

// Server is a server that runs. One goroutine at a time may use it.
type Server struct {
	Name string
	Addr string // as way.Env has it: host:port for redis and beanstalkd, a URL for the others

	dir       string
	program   program
	processes []*process // in the order in which they were started
}

// Start starts the server of a name in a new folder below dir, and returns when it
// answers: within a second, or 15 s for RabbitMQ. The error is ErrMissing if it is not
// installed. The context is for starting only: the server lives until Stop.
func Start(ctx context.Context, dir, name string) (*Server, error) {
	if programs()[name] == nil {
		return nil, fmt.Errorf("no server is called %q: use one of %s", name, strings.Join(Names(), ", "))
	}
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, dir, name)
		if err == nil {
			return s, nil
		}
		err = fmt.Errorf("starting %s: %w", name, err)
		if s == nil {
			return nil, err
		}
		end := s.logEnd()
		if end != "" {
			err = fmt.Errorf("%w; its log ends: %s", err, end)
		}
		err = errors.Join(err, s.Stop())
		if !portTaken(end) || attempt == portAttempts {
			return nil, err
		}
	}
}

// start returns a server together with an error when there is something to stop.
func start(ctx context.Context, dir, name string) (*Server, error) {
	own, err := os.MkdirTemp(dir, name+"-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for %s: %w", name, err)
	}
	s := &Server{Name: name, dir: own, program: programs()[name]()}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := s.program.launch(ctx, s); err != nil {
		return s, err
	}
	return s, s.await(ctx, func() error { return s.program.ready(ctx, s) })
}

// await asks again and again until the answer is nil. It gives up when ctx or one of the
// processes has ended.
func (s *Server) await(ctx context.Context, ask func() error) error {
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		for _, p := range s.processes {
			if p.ended() {
				return fmt.Errorf("%s ended before it answered: %s", p.name(), p.cmd.ProcessState)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w: %w", ctx.Err(), err)
		case <-poll.C:
		}
	}
}

// Memory is what the server keeps its jobs in, in bytes:
//   - redis: used_memory, all that it has allocated, without what fragmentation wastes
//   - postgres: the size on disk of all tables of users with their indexes and TOAST,
//     dead rows included, after a CHECKPOINT and without a VACUUM
//   - rabbitmq: the resident memory of the Erlang machine, the empty server's included
//   - beanstalkd: its resident memory, the empty server's included
//
// Take it before and after, for what jobs add.
func (s *Server) Memory(ctx context.Context) (int64, error) {
	n, err := s.program.memory(ctx, s)
	return n, s.wrap("its memory", err)
}

// Count counts the commands that clients send from now on until the function that it
// returns is called, once, which says how many there were:
//   - redis: without those within scripts. It costs the server as much again as what is
//     counted, so measure nothing else meanwhile.
//   - postgres: transactions that were committed or rolled back, its own upkeep's
//     included. A connection reports them a second after it did before or, once it
//     idles, up to ten seconds after that. Memory adds one or two.
//
// The others don't tell: it is ErrUnknown.
func (s *Server) Count(ctx context.Context) (counted func(context.Context) (int64, error), err error) {
	const what = "how many commands it gets"
	count, err := s.program.count(ctx)
	if err != nil {
		return nil, s.wrap(what, err)
	}
	return func(ctx context.Context) (int64, error) {
		n, err := count(ctx)
		return n, s.wrap(what, err)
	}, nil
}

// Reset forgets what Longest knows. It is ErrUnknown for all but redis.
func (s *Server) Reset(ctx context.Context) error {
	return s.wrap("to forget its longest block", s.program.reset(ctx))
}

// Longest is the longest time for which redis did nothing else since Reset, by a
// command, an expiry cycle, a fork or a write to its log, as LATENCY LATEST has it: in
// whole milliseconds, and zero if nothing took 1 ms. It is ErrUnknown for the others.
func (s *Server) Longest(ctx context.Context) (time.Duration, error) {
	d, err := s.program.longest(ctx)
	return d, s.wrap("its longest block", err)
}

func (s *Server) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("asking %s for %s: %w", s.Name, what, err)
}

// Program is the path of a server's program. The error is ErrMissing if it is not
// installed.
func Program(name string) (string, error) {
	switch name {
	case "redis":
		return find("redis-server", "redis-server")
	case "postgres":
		return find("postgresql", pgFolder+"postgres", "postgres")
	case "rabbitmq":
		// Debian's command on the PATH starts it through su, as another user's child.
		return find("rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")
	case "beanstalkd":
		return find("beanstalkd", "beanstalkd")
	}
	return "", fmt.Errorf("no server is called %q: use one of %s", name, strings.Join(Names(), ", "))
}

// find is the first of a server's programs that is there: paths, or names to look up.
func find(debian string, names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is %w: apt-get install %s", names[len(names)-1], ErrMissing, debian)
}

// silent is a server that does not tell what only some do.
type silent struct{}

func (silent) count(context.Context) (func(context.Context) (int64, error), error) {
	return nil, ErrUnknown
}

func (silent) reset(context.Context) error                    { return ErrUnknown }
func (silent) longest(context.Context) (time.Duration, error) { return 0, ErrUnknown }
