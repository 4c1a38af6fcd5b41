package tasks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/registry"
)

const (
	defaultMaxOutput = 64 << 10
	maxMaxOutput     = 256 << 20
	defaultKillDelay = 5 * time.Second
	// errorOutput is how much of a command's last words its error quotes: the
	// error is stored with the job, the rest is for the log.
	errorOutput = 1024
)

// Exec runs a command a run. It gets the payload on stdin and, in its
// environment, KEYFUSE_ID, KEYFUSE_TASK, KEYFUSE_RUN_ID, KEYFUSE_ATTEMPT,
// KEYFUSE_DUE, KEYFUSE_REASON and, when it is not zero, KEYFUSE_COUNT; and
// TRACEPARENT, if the job has a trace. An id
// that is no UTF-8 or holds a NUL byte is in KEYFUSE_ID_BASE64 instead, and
// KEYFUSE_ID is then not set.
type Exec struct {
	// Command is the program and its arguments. There is no shell: nothing in
	// them is expanded. A program without a slash is looked up in the daemon's
	// PATH.
	Command []string
	// Dir is the working directory. Empty means the daemon's. A program with a
	// relative path is looked up from here.
	Dir string
	// Env holds further variables, NAME=value; they win over inherited ones.
	// A command inherits PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_ALL,
	// LC_CTYPE, TZ and TMPDIR (on Windows also PATHEXT, COMSPEC, TEMP, TMP and
	// USERPROFILE) and nothing else, so that the daemon's secrets stay its own.
	Env []string
	// MaxOutput is how many bytes are kept of stdout and of stderr, the last
	// ones of each; a command may write any amount. Zero means 64 KiB, and
	// 256 MiB is the most.
	MaxOutput int64
	// KillDelay is how long a command has to end after SIGTERM before SIGKILL,
	// and how long its output is waited for after it has ended, in case a
	// child holds on to it. Zero means 5 s.
	KillDelay time.Duration
	// Logger takes a record for each ended command, with the kept output: at
	// info if it wrote something, else at debug. Nil means slog.Default, as it
	// is when the task is made.
	Logger *slog.Logger
}

type execTask struct {
	Exec
	env []string // inherited and configured
}

// NewExec returns a task that runs the command. Exit status 0 is done; anything
// else, also a command that can't be started, is an error to be retried.
//
// The command has a process group of its own. When the run's context ends, the
// group gets SIGTERM and, after KillDelay, SIGKILL, so that no child of it
// survives (where there are no process groups, the command alone is killed at
// once). What a command leaves in the background when it ends by itself is left
// alone.
//
// NewExec refuses an empty command, a NUL byte, a variable that is no
// NAME=value or that the task sets itself, and negative limits.
func NewExec(c Exec) (registry.Handler, error) {
	c.MaxOutput = cmp.Or(c.MaxOutput, defaultMaxOutput)
	c.KillDelay = cmp.Or(c.KillDelay, defaultKillDelay)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("exec task: %w", err)
	}
	c.Command = slices.Clone(c.Command)
	return &execTask{Exec: c, env: append(inheritedEnv(), c.Env...)}, nil
}

func (c Exec) check() error {
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		return errors.New("command is empty: give the program and its arguments as a list")
	case strings.Contains(strings.Join(c.Command, "")+c.Dir, "\x00"):
		return errors.New("command or dir holds a NUL byte")
	case c.MaxOutput < 0 || c.MaxOutput > maxMaxOutput:
		return errors.New("the kept output must be from 1 byte to 256 MiB; leave it out for 64 KiB")
	case c.KillDelay < 0:
		return errors.New("the kill delay is negative; leave it out for 5s")
	}
	return checkEnv(c.Env)
}

// checkEnv shows names only: values may be secrets.
func checkEnv(env []string) error {
	for i, variable := range env {
		name, value, ok := strings.Cut(variable, "=")
		switch {
		case !ok || name == "":
			return fmt.Errorf("variable %d of env is no NAME=value", i+1)
		case strings.Contains(name+value, "\x00"):
			return fmt.Errorf("variable %s holds a NUL byte", quoteHead(name, 128))
		case name == traceVariable, slices.ContainsFunc(fieldNames(), func(field string) bool { return name == envName(field) }):
			return fmt.Errorf("variable %s is one that the task sets itself", name)
		}
	}
	return nil
}

func inheritedEnv() []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
		"PATHEXT", "COMSPEC", "TEMP", "TMP", "USERPROFILE",
	} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// traceVariable has the trace, as OpenTelemetry's programs expect it.
const traceVariable = "TRACEPARENT"

func envName(field string) string { return "KEYFUSE_" + strings.ToUpper(field) }

// jobEnv is what a command is told of its run.
func jobEnv(job registry.Job) []string {
	var env []string
	for _, f := range about(job, isEnvText) {
		env = append(env, fmt.Sprintf("%s=%v", envName(f.name), f.value))
	}
	if job.Trace != "" {
		env = append(env, traceVariable+"="+job.Trace)
	}
	return env
}

func isEnvText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// Handle runs the command and waits for it.
func (t *execTask) Handle(ctx context.Context, job registry.Job) error {
	stdout, stderr := &tail{limit: int(t.MaxOutput)}, &tail{limit: int(t.MaxOutput)}
	cmd := exec.CommandContext(ctx, t.Command[0], t.Command[1:]...)
	cmd.Dir = t.Dir
	cmd.Env = slices.Concat(t.env, jobEnv(job))
	cmd.Stdin = bytes.NewReader(job.Payload)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = t.KillDelay
	group := newGroup(cmd)
	if err := cmd.Start(); err != nil {
		return t.notStarted(ctx, err)
	}
	err := cmd.Wait()
	stopped := group.clear(t.KillDelay)
	t.log(ctx, job, cmd, stdout, stderr)
	switch {
	case stopped:
		return t.failed(context.Cause(ctx), stdout, stderr)
	case cmd.ProcessState.Success(): // err may still say that a child held the output
		return nil
	}
	return t.failed(err, stdout, stderr)
}

func (t *execTask) notStarted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("command %q was not started: %w", t.Command[0], context.Cause(ctx))
	}
	return fmt.Errorf("command %q can't be started: %w; install it on this node or correct the task's command", t.Command[0], err)
}

// failed quotes the command's last words: of stderr or, where that is empty, of
// stdout. The arguments stay unsaid: they may hold secrets.
func (t *execTask) failed(err error, stdout, stderr *tail) error {
	name, words := "stderr", stderr.String()
	if words == "" {
		name, words = "stdout", stdout.String()
	}
	if words == "" {
		return fmt.Errorf("command %q: %w", t.Command[0], err)
	}
	return fmt.Errorf("command %q: %w; its %s ends %s", t.Command[0], err, name, quoteTail(words, errorOutput))
}

func (t *execTask) log(ctx context.Context, job registry.Job, cmd *exec.Cmd, stdout, stderr *tail) {
	level := slog.LevelDebug
	if len(stdout.kept)+len(stderr.kept) > 0 {
		level = slog.LevelInfo
	}
	if !t.Logger.Enabled(ctx, level) {
		return
	}
	id := textOrBase64("id", shorten(job.ID, logPreview), utf8.ValidString)
	t.Logger.LogAttrs(ctx, level, "command ended", slog.Any(id.name, id.value),
		slog.String("task", job.Task), slog.String("run_id", job.RunID), slog.Int("attempt", job.Attempt),
		slog.String("ended", cmd.ProcessState.String()),
		slog.String("stdout", stdout.String()), slog.String("stderr", stderr.String()))
}
