package measure

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// shelled is a world whose worker is a shell script.
func shelled(t *testing.T, script string) *world {
	t.Helper()
	lab := &Lab{
		Way: way.Way{Name: "shell", Needs: []string{"a server"}}, Dir: t.TempDir(),
		Work: func(Work) (*exec.Cmd, error) { return exec.Command("sh", "-c", script), nil },
	}
	return &world{Lab: lab, rec: newRecord(t, 1), jobs: 1}
}

func never() bool { return false }

func TestAWorkerThatFailsSaysWhy(t *testing.T) {
	w := shelled(t, "echo no luck >&2; exit 3")
	if err := w.work(t.Context()); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("%v: want what it said", err)
	}
}

func TestAWorkerMayNotEndByItself(t *testing.T) {
	w := shelled(t, "exit 0")
	if err := w.work(t.Context()); !errors.Is(err, errEnded) {
		t.Errorf("%v: want %v", err, errEnded)
	}
	if err := w.worker.stop(); err != nil {
		t.Errorf("stopping what has ended: %v", err)
	}
}

// A kill reaches what a worker has started: the pipe ends when nobody holds it any more.
func TestKillReachesChildren(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	w := shelled(t, "exec 3>"+pipe+"; sleep 60 & echo up >&3; wait")
	if err := w.spawn(Work{}); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if said, err := bufio.NewReader(held).ReadString('\n'); err != nil || said != "up\n" {
		t.Fatalf("%q, %v", said, err)
	}
	w.worker.kill()
	killed := time.Now()
	if _, err := io.ReadAll(held); err != nil || time.Since(killed) > 30*time.Second {
		t.Errorf("what it started held the pipe for %s: %v", time.Since(killed), err)
	}
	if err := w.await(t.Context(), never); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v: want that it was killed", err)
	}
}
