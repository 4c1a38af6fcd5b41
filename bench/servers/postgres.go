package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

const (
	pgFolder   = "/usr/lib/postgresql/15/bin/" // Debian's, which is not on the PATH
	pgUser     = "bench"
	pgDatabase = "postgres" // which initdb makes
	// pgAside is a database of its own for the questions of this package, so that they
	// don't count among the other's transactions.
	pgAside = "template1"
)

// postgresServer is a PostgreSQL at its defaults, but for two. fsync and
// synchronous_commit are on, so what it has acknowledged outlives the machine's fall.
type postgresServer struct {
	silent
	port  int
	aside *pgx.Conn
}

func (p *postgresServer) launch(ctx context.Context, s *Server) error {
	initdb, err := find("postgresql", pgFolder+"initdb", "initdb")
	if err != nil {
		return err
	}
	postgres, err := Program("postgres")
	if err != nil {
		return err
	}
	attr, err := notRoot(s.dir)
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	p.port = ports[0]
	s.Addr = p.url(pgDatabase)
	data := pgData(s)
	// The folder lives as long as the machine is up: initdb need not flush it.
	initialize := exec.CommandContext(ctx, initdb, "--pgdata", data, "--username", pgUser,
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	initialize.Dir, initialize.SysProcAttr = s.dir, dieWithParent(attr())
	if text, err := initialize.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, text)
	}
	return p.run(s, postgres, data, attr())
}

func (p *postgresServer) run(s *Server, binary, data string, attr *syscall.SysProcAttr) error {
	cmd := exec.Command(binary, "-D", data, "-p", strconv.Itoa(p.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		// The default of 128 MB is for any machine. A quarter of its memory is advised
		// for a server of its own; this is what millions of jobs and their indexes gain
		// from, and what a machine with other servers spares.
		"-c", "shared_buffers=256MB",
		// 100 is the default: the pools of a worker, of those that schedule, and of
		// what is run beside need more.
		"-c", "max_connections=200",
	)
	cmd.Dir, cmd.SysProcAttr = s.dir, attr
	// SIGQUIT ends it without waiting for clients or writing what is thrown away.
	return s.spawn(cmd, syscall.SIGQUIT)
}

func (p *postgresServer) url(database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", pgUser, loopback(p.port), database)
}

func pgData(s *Server) string { return filepath.Join(s.dir, "data") }

// ready reads the file in which the server itself says so, since another might answer
// on the port.
func (p *postgresServer) ready(ctx context.Context, s *Server) error {
	text, err := os.ReadFile(filepath.Join(pgData(s), "postmaster.pid"))
	if err != nil {
		return err
	}
	const status = 7 // the line
	lines := strings.Split(string(text), "\n")
	if len(lines) <= status || strings.TrimSpace(lines[status]) != "ready" {
		return errors.New("it is starting")
	}
	p.aside, err = pgx.Connect(ctx, p.url(pgAside))
	return err
}

func (p *postgresServer) memory(ctx context.Context, s *Server) (int64, error) {
	if _, err := p.aside.Exec(ctx, "CHECKPOINT"); err != nil {
		return 0, err
	}
	conn, err := pgx.Connect(ctx, s.Addr) // sizes are known in a table's own database
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	var bytes int64
	err = conn.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint
		FROM pg_stat_user_tables`).Scan(&bytes)
	return bytes, err
}

func (p *postgresServer) count(ctx context.Context) (func(context.Context) (int64, error), error) {
	before, err := p.transactions(ctx)
	return func(ctx context.Context) (int64, error) {
		now, err := p.transactions(ctx)
		return now - before, err
	}, err
}

func (p *postgresServer) transactions(ctx context.Context) (int64, error) {
	var count int64
	err := p.aside.QueryRow(ctx, `SELECT xact_commit + xact_rollback
		FROM pg_stat_database WHERE datname = $1`, pgDatabase).Scan(&count)
	return count, err
}

func (p *postgresServer) close() {
	if p.aside != nil {
		_ = p.aside.Close(context.Background()) // the server ends next
	}
}

// notRoot says how to start what refuses to run as root, and gives it the folder. For
// any other user there is nothing to do.
func notRoot(dir string) (func() *syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return func() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }, nil
	}
	uid, gid, err := someUser("postgres", "nobody")
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return nil, err
	}
	if err := letPass(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	return func() *syscall.SysProcAttr {
		return &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
		}
	}, nil
}

// letPass lets all users pass through the temporary folders that lead to dir, without
// seeing what is in them.
func letPass(dir string) error {
	within := filepath.Clean(os.TempDir()) + string(filepath.Separator)
	for ; strings.HasPrefix(dir, within); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if err := os.Chmod(dir, info.Mode().Perm()|0o011); err != nil {
			return err
		}
	}
	return nil
}

// someUser is the first of the users that there is.
func someUser(names ...string) (uid, gid int, err error) {
	for _, name := range names {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		return uid, gid, errors.Join(uidErr, gidErr)
	}
	return 0, 0, fmt.Errorf("PostgreSQL refuses to run as root, and none of the users %s is there: run this as another user",
		strings.Join(names, ", "))
}
