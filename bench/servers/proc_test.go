package servers

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A process's CPU time is with that of those that it started, however deep: here only
// the grandchild uses any.
func TestCPUOfIsOfAllBelow(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	const busy = "while :; do :; done"
	parent := exec.Command("sh", "-c", `sh -c 'sh -c "`+busy+`" & wait' & wait`)
	parent.SysProcAttr = dieWithParent(&syscall.SysProcAttr{Setpgid: true})
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := parent.Process.Pid
	defer func() {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // all three of them
		_ = parent.Wait()
	}()
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		used, err := CPUOf(pid)
		if err != nil {
			t.Fatal(err)
		}
		if used >= 200*time.Millisecond {
			break
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("it has used %s only", used)
		}
	}
	if alone := cpu(pid); alone > 100*time.Millisecond {
		t.Errorf("the one that waits has used %s itself", alone)
	}
}

func TestCPUOfWhatHasEnded(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if used, err := CPUOf(ended.Process.Pid); err == nil {
		t.Errorf("%s of a process that has ended", used)
	}
}
