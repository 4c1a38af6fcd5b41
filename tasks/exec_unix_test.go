//go:build unix

package tasks

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/registry"
)

// script is a command that runs a shell script in the test's directory.
func script(t *testing.T, text string) Exec {
	return Exec{Command: []string{"/bin/sh", "-c", text}, Dir: t.TempDir()}
}

func readFile(t *testing.T, c Exec, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestExecGivesThePayloadOnStdinAndTellsOfTheRun(t *testing.T) {
	c := script(t, `cat > stdin; env > env`)
	job := aJob()
	job.Payload, job.Count = []byte("\x00\xffany\nbytes"), 12
	if err := must(t)(NewExec(c)).Handle(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, c, "stdin"); got != string(job.Payload) {
		t.Errorf("stdin was %q", got)
	}
	for _, variable := range []string{
		"KEYFUSE_ID=order:42", "KEYFUSE_TASK=cancel-order", "KEYFUSE_RUN_ID=run-7", "KEYFUSE_ATTEMPT=3",
		"KEYFUSE_DUE=2026-12-01T09:00:00.005Z", "KEYFUSE_REASON=timer", "KEYFUSE_COUNT=12",
	} {
		wantContains(t, "\n"+readFile(t, c, "env"), "\n"+variable+"\n")
	}
}

func TestExecInheritsNoSecretOfTheDaemon(t *testing.T) {
	t.Setenv("KEYFUSE_TOKEN", "hunter2")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	t.Setenv("TZ", "Asia/Shanghai")
	c := script(t, `env > env`)
	c.Env = []string{"MODE=fast", "HOME=elsewhere"}
	if err := must(t)(NewExec(c)).Handle(t.Context(), aJob()); err != nil {
		t.Fatal(err)
	}
	env := "\n" + readFile(t, c, "env")
	wantWithout(t, env, "hunter2")
	wantContains(t, env, "\nMODE=fast\n", "\nHOME=elsewhere\n", "\nTZ=Asia/Shanghai\n", "\nPATH="+os.Getenv("PATH")+"\n")
}

func TestExecIsNoShell(t *testing.T) {
	dir := t.TempDir()
	c := Exec{Command: []string{"/bin/sh", "-c", `printf %s "$1" > arg`, "sh", "$(touch pwned); $KEYFUSE_ID *"}, Dir: dir}
	job := aJob()
	job.ID = "$(touch pwned)"
	if err := must(t)(NewExec(c)).Handle(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, c, "arg"); got != c.Command[4] {
		t.Errorf("the argument came as %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("an argument was expanded")
	}
}

func TestExecOtherExitsAreRetriedAndQuoteTheLastWords(t *testing.T) {
	for text, parts := range map[string][]string{
		`echo out; printf 'bad\n\377' >&2; exit 3`: {`command "/bin/sh": exit status 3; its stderr ends "bad\n�"`},
		`echo only; exit 1`:                        {`exit status 1; its stdout ends "only\n"`},
		`exit 2`:                                   {"exit status 2"},
		`kill -9 $$`:                               {"signal: killed"},
	} {
		err := must(t)(NewExec(script(t, text))).Handle(t.Context(), aJob())
		wantVerdict(t, err, registry.VerdictRetry)
		wantContains(t, err.Error(), parts...)
		if !utf8.ValidString(err.Error()) {
			t.Errorf("%q is no UTF-8", err.Error())
		}
	}
}

func TestExecMayWriteAnyAmountAndTheErrorStaysShort(t *testing.T) {
	var out bytes.Buffer
	c := script(t, `head -c 20000000 /dev/zero; head -c 20000000 /dev/zero | tr '\0' x >&2; echo end >&2; exit 1`)
	c.Logger, c.MaxOutput = logTo(&out), 4096
	err := must(t)(NewExec(c)).Handle(t.Context(), aJob())
	wantContains(t, err.Error(), "exit status 1", `xend\n"`)
	if n := len(err.Error()); n > 2*errorOutput {
		t.Errorf("the error has %d bytes", n)
	}
	wantContains(t, out.String(), `task=cancel-order run_id=run-7 attempt=3 ended="exit status 1"`, strings.Repeat("x", 4092)+`end`)
	wantWithout(t, out.String(), strings.Repeat("x", 4093))
}

func TestExecWhatACommandSaysIsSeenAtInfoAndSilenceAtDebug(t *testing.T) {
	for text, level := range map[string]string{`echo hello`: "INFO", `echo hello >&2`: "INFO", `exit 0`: "DEBUG"} {
		var out bytes.Buffer
		c := script(t, text)
		c.Logger = logTo(&out)
		if err := must(t)(NewExec(c)).Handle(t.Context(), aJob()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		wantContains(t, out.String(), "level="+level+` msg="command ended" id=`)
	}
}

func TestExecCommandThatLeavesItsInputUnreadIsDone(t *testing.T) {
	job := aJob()
	job.Payload = make([]byte, 1<<20)
	if err := must(t)(NewExec(script(t, `exit 0`))).Handle(t.Context(), job); err != nil {
		t.Error(err)
	}
}

func TestExecChildThatHoldsTheOutputDoesNotHangTheHandler(t *testing.T) {
	c := script(t, `sleep 1000 & echo $! > pid; exit 0`)
	c.KillDelay = 50 * time.Millisecond
	err := must(t)(NewExec(c)).Handle(t.Context(), aJob())
	pid, _ := strconv.Atoi(strings.TrimSpace(readFile(t, c, "pid")))
	if pid <= 1 {
		t.Fatalf("no pid: %d", pid)
	}
	if killed := syscall.Kill(pid, syscall.SIGKILL); killed != nil {
		t.Errorf("a child left in the background must be left alone: %v", killed)
	}
	if err != nil {
		t.Error(err)
	}
}

// watched runs a script that opens fd 3 as its watched pipe and says "started"
// there, ends the run's context then, and returns what was said afterwards and
// the handler's error. The pipe ends when the last process that has it is gone.
func watched(t *testing.T, text string, killDelay time.Duration) (string, error) {
	t.Helper()
	c := script(t, "exec 3> watch\n"+text)
	c.KillDelay = killDelay
	fifo := filepath.Join(c.Dir, "watch")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	handled := make(chan error, 1)
	go func() { handled <- must(t)(NewExec(c)).Handle(ctx, aJob()) }()

	pipe, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	said := bufio.NewReader(pipe)
	if line, err := said.ReadString('\n'); line != "started\n" {
		t.Fatalf("the script said %q, %v", line, err)
	}
	cancel(errShutdown)
	rest, err := io.ReadAll(said)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest), <-handled
}

func TestExecEndOfTheContextEndsCommandAndChildren(t *testing.T) {
	const patient = 20 * time.Second
	for name, c := range map[string]struct {
		script string
		delay  time.Duration // patient: long enough that SIGKILL plays no part
		says   string
	}{
		"on SIGTERM":           {`sleep 1000 & sleep 1000 & echo started >&3; wait`, patient, ""},
		"given time to clean":  {`trap 'echo cleaned >&3; exit 0' TERM; echo started >&3; while :; do sleep 0.01; done`, patient, "cleaned\n"},
		"that ignores SIGTERM": {`trap '' TERM; echo started >&3; while :; do sleep 0.01; done`, 100 * time.Millisecond, ""},
		"whose child ignores":  {`(trap '' TERM; echo started >&3; while :; do sleep 0.01; done) & wait`, 100 * time.Millisecond, ""},
		"whose child ignores, without output": {
			`(trap '' TERM; echo started >&3; while :; do sleep 0.01; done) > /dev/null 2>&1 & wait`, 100 * time.Millisecond, "",
		},
		"whose child cleans up after it is gone": {
			`(trap 'sleep 0.2; echo cleaned >&3; exit' TERM; echo started >&3; while :; do sleep 0.01; done) > /dev/null 2>&1 & wait`, patient, "cleaned\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			said, err := watched(t, c.script, c.delay)
			if !errors.Is(err, errShutdown) {
				t.Errorf("error %v", err)
			}
			if said != c.says {
				t.Errorf("the script said %q, want %q", said, c.says)
			}
			wantVerdict(t, err, registry.VerdictRetry)
		})
	}
}

func TestExecInAnEndedContextStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errShutdown)
	c := script(t, `touch started`)
	err := must(t)(NewExec(c)).Handle(ctx, aJob())
	if !errors.Is(err, errShutdown) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "started")); err == nil {
		t.Error("the command ran")
	}
}
