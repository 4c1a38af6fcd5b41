//go:build unix

package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	readyWithin = 20 * time.Second // slow machines, and data to load
	readyPoll   = 2 * time.Millisecond
	replyWithin = time.Second
	stopWithin  = 5 * time.Second
)

// process is one redis-server process; its end is seen on done.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal sends sig. A process that has ended already is no error.
func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// Launch starts the process and returns without waiting until it answers, for
// tests that want to meet a server that is still loading. It fails the test if
// the server runs.
func (s *Server) Launch() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && s.proc.running() {
		s.t.Fatalf("redistest: Launch of a server that runs, as pid %d", s.proc.cmd.Process.Pid)
	}
	proc, err := s.spawn()
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	s.proc, s.paused = proc, false
}

func (s *Server) spawn() (*process, error) {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	own := []string{
		strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--unixsocket", s.Socket(), "--daemonize", "no", "--logfile", "",
	}
	cmd := exec.Command(s.binary, slices.Concat(s.args, s.listen, own)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	proc := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(proc.done)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return proc, nil
}

// Await waits until the server answers and has loaded its data, and fails the
// test if it ends first or takes more than 20 s.
func (s *Server) Await() {
	s.t.Helper()
	if err := s.await(); err != nil {
		s.t.Fatalf("redistest: redis-server on %s: %v", s.Addr(), err)
	}
}

// await asks on the Unix socket, which redis-server opens after its TCP port
// and in this server's own directory: so the answer can't be that of another
// server which took the port.
func (s *Server) await() error {
	proc := s.current()
	err := poll(readyWithin, readyPoll, proc.done, func() error {
		reply, err := ping(s.Socket())
		if err == nil && strings.HasPrefix(reply, "-LOADING") {
			err = fmt.Errorf("it answers %q", reply)
		}
		return err
	})
	if err != nil && !proc.running() {
		return fmt.Errorf("ended before it answered: %s", proc.cmd.ProcessState)
	}
	return err
}

// ping returns the first line of the answer, which is an error where a password
// or a master is missing; that server is up as well.
func ping(socket string) (string, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(replyWithin)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}

// Restart stops the server if it runs, starts it again on its port and in its
// directory, with what its RDB or AOF kept, and waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.Launch()
	s.Await()
}

// Stop ends the process as an operator does, with SIGTERM, and waits for it. A
// process that is not gone after 5 s is killed. Stopping a server that doesn't
// run does nothing.
func (s *Server) Stop() {
	proc := s.current()
	if proc == nil {
		return
	}
	proc.signal(syscall.SIGTERM)
	proc.signal(syscall.SIGCONT) // a paused process sees no SIGTERM
	grace := time.NewTimer(stopWithin)
	defer grace.Stop()
	select {
	case <-proc.done:
	case <-grace.C:
		s.Kill()
	}
}

// Kill ends the process with SIGKILL, as a crash does, and waits for it.
// Killing a server that doesn't run does nothing.
func (s *Server) Kill() {
	if proc := s.current(); proc != nil {
		proc.signal(syscall.SIGKILL)
		<-proc.done
	}
}

// Pause stops the process in its tracks (SIGSTOP): its connections stay open,
// new ones are accepted by the kernel, and nothing answers.
func (s *Server) Pause() { s.hold(true, syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() { s.hold(false, syscall.SIGCONT) }

func (s *Server) hold(paused bool, sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.signal(sig)
		s.paused = paused
	}
}

// up reports whether the process runs and is not paused.
func (s *Server) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc != nil && s.proc.running() && !s.paused
}

// Pid is the process's id; after it ended, the id it had.
func (s *Server) Pid() int { return s.current().cmd.Process.Pid }

func (s *Server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// end is the server's cleanup. It kills: redis-server sees a SIGTERM only when
// its cron runs, which takes 100 ms a test, and nothing is left to be saved.
func (s *Server) end() {
	s.Kill()
	if s.t.Failed() {
		s.t.Logf("redistest: log of redis-server on %s:\n%s", s.Addr(), s.Log())
	}
}
