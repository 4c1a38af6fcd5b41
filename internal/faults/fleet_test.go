package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// fleet is all daemons: each has a place, in which one process follows another.
type fleet struct {
	dir    string
	conns  []conn // a place
	cfg    daemonConfig
	places []*proc // the process that is in each; nil if none is
	starts []int   // processes that each place has had
	unread []*proc // whose events have not all been read
	book   *book
}

// proc is one daemon process.
type proc struct {
	name  string // d2.3: the third process in the second place
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	tail  tail

	// What follows is guarded by the book.

	begun  int64 // ns
	gone   int64 // when it ended; 0 while it runs
	how    string
	froze  []span // while it was stopped in its tracks
	lost   []int64
	clean  bool   // its engine ended as it should
	isLive bool   // it said that it is ready
	deaf   string // why no events come; "" if they do
}

// span is a time; an end of 0 is still to come.
type span struct{ from, to int64 }

// launch starts a daemon in a place that is free.
func (f *fleet) launch(place int) error {
	f.starts[place]++
	p := &proc{name: fmt.Sprintf("d%d.%d", place+1, f.starts[place]), done: make(chan struct{}), begun: time.Now().UnixNano()}
	cfg := f.cfg
	cfg.Conn, cfg.Record = f.conns[place], filepath.Join(f.dir, p.name+".rec")
	text, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(f.dir, p.name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p.tail.path = cfg.Record
	p.cmd = exec.Command(os.Args[0])
	// Not the test's own: what skews Redis's clock must not reach a daemon.
	p.cmd.Env = append(slices.DeleteFunc(os.Environ(), isPreload), daemonEnv+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended is in its state
	}()
	f.unread = append(f.unread, p)
	f.places[place] = p
	return nil
}

// end waits until a process that was told to end has done so.
func (f *fleet) end(place int, how string, within time.Duration) error {
	p := f.places[place]
	timer := time.NewTimer(within)
	defer timer.Stop()
	var err error
	select {
	case <-p.done:
	case <-timer.C:
		err = fmt.Errorf("%s did not end within %s of SIGTERM, and was killed", p.name, within)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	f.book.locked(func() { p.gone, p.how = time.Now().UnixNano(), how })
	f.places[place] = nil
	return err
}

func (f *fleet) kill(place int) {
	p := f.places[place]
	_ = p.cmd.Process.Kill() // it may have ended by itself; then its state says so
	_ = f.end(place, "killed", time.Minute)
}

// termWithin is how long a daemon may take to end: its grace, the last words of
// its handlers, and the last outcomes, if Redis is slow to take them.
func (f *fleet) termWithin() time.Duration { return f.cfg.Grace + 15*time.Second }

func (f *fleet) term(place int) error {
	p := f.places[place]
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s ended by itself: %w", p.name, err)
	}
	return f.end(place, "stopped", f.termWithin())
}

func (f *fleet) freeze(place int) {
	p := f.places[place]
	f.book.locked(func() { p.froze = append(p.froze, span{from: time.Now().UnixNano()}) })
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
}

func (f *fleet) thaw(place int) {
	p := f.places[place]
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	f.book.locked(func() { p.froze[len(p.froze)-1].to = time.Now().UnixNano() })
}

// running are the places that have a process.
func (f *fleet) running() []int {
	var places []int
	for i, p := range f.places {
		if p != nil {
			places = append(places, i)
		}
	}
	return places
}

// crashed are processes that ended though nobody told them to.
func (f *fleet) crashed() []string {
	var names []string
	for _, p := range f.places {
		if p == nil {
			continue
		}
		select {
		case <-p.done:
			names = append(names, p.name+": "+p.cmd.ProcessState.String())
		default:
		}
	}
	return names
}

// close ends what is left, at the end of a test.
func (f *fleet) close() {
	for _, place := range f.running() {
		f.kill(place)
	}
}
