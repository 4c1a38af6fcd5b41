package servers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	stopWithin = 10 * time.Second
	logShown   = 2000 // bytes of a log's end in an error
)

// process is one that was started here; its end is seen on done.
type process struct {
	cmd   *exec.Cmd
	stop  os.Signal     // asks it to end
	grace time.Duration // for that
	done  chan struct{}
}

func (p *process) name() string { return filepath.Base(p.cmd.Path) }

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// spawn starts a process of the server, which writes to its log. The signal is what asks
// it for its quickest orderly end: what it stored is thrown away.
func (s *Server) spawn(cmd *exec.Cmd, stop syscall.Signal) error {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd: cmd, stop: stop, grace: stopWithin, done: make(chan struct{})}
	s.processes = append(s.processes, p)
	go func() { // Stop waits for it
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return nil
}

// Pids are the ids of all processes of the server, its children's included, while they
// run.
func (s *Server) Pids() []int { return tree(s.roots()) }

func (s *Server) roots() []int {
	var pids []int
	for _, p := range s.processes {
		if !p.ended() {
			pids = append(pids, p.pid())
		}
	}
	return pids
}

// CPU is the time that all processes of the server have used since it was started, user
// and system, that of children which have ended included (as PostgreSQL's connections
// do). It counts in steps of 10 ms a process, and is zero once the server has ended.
func (s *Server) CPU() time.Duration { return cpuOf(s.roots()) }

// Stop ends the server's processes, those that do not end within 10 s by force, and
// removes its folder. Stopping it again does nothing.
func (s *Server) Stop() error {
	s.program.close()
	for _, p := range slices.Backward(s.processes) {
		p.end()
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("removing what %s stored: %w", s.Name, err)
	}
	return nil
}

// end ends the process, and what it leaves behind: a child that is about to end by
// itself, or one that nobody else would end after a kill.
func (p *process) end() {
	if p.ended() {
		return
	}
	children := make(map[int]int64)
	for _, pid := range tree([]int{p.pid()})[1:] {
		children[pid] = started(pid)
	}
	_ = p.cmd.Process.Signal(p.stop) // an error says that it has ended
	grace := time.NewTimer(p.grace)
	defer grace.Stop()
	select {
	case <-p.done:
	case <-grace.C:
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	for pid, start := range children {
		if started(pid) == start {
			_ = syscall.Kill(pid, syscall.SIGKILL) // an error says that it has ended
		}
	}
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

func (s *Server) logEnd() string {
	text, err := os.ReadFile(s.log())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(text[max(0, len(text)-logShown):])
}

// portTaken reads from the end of a log whether another process had one of the ports.
func portTaken(log string) bool {
	log = strings.ToLower(log)
	return strings.Contains(log, "in use") || strings.Contains(log, "eaddrinuse")
}

// freePorts are so many ports that no process listens on.
func freePorts(count int) ([]int, error) {
	ports := make([]int, count)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer l.Close() // after the last, so that all are different
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
