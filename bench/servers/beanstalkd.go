package servers

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/beanstalkd/go-beanstalk"
)

// beanstalkServer is a beanstalkd that keeps a binlog, which it writes to disk every 50 ms,
// its default.
type beanstalkServer struct{ silent }

func (beanstalkServer) launch(_ context.Context, s *Server) error {
	binary, err := Program("beanstalkd")
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	s.Addr = loopback(ports[0])
	return s.spawn(exec.Command(binary, "-l", "127.0.0.1", "-p", strconv.Itoa(ports[0]), "-b", s.dir), syscall.SIGTERM)
}

func (beanstalkServer) ready(_ context.Context, s *Server) error {
	conn, err := beanstalk.Dial("tcp", s.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	stats, err := conn.Stats()
	if err != nil {
		return err
	}
	if stats["pid"] != strconv.Itoa(s.processes[0].pid()) {
		return errors.New("another beanstalkd answers")
	}
	return nil
}

func (beanstalkServer) memory(_ context.Context, s *Server) (int64, error) {
	return resident(s.processes[0].pid())
}

func (beanstalkServer) close() {}
