package tasks

import (
	"encoding/base64"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

func TestExecCommandThatIsMissingIsRetriedAndSaysSo(t *testing.T) {
	for _, c := range []Exec{
		{Command: []string{"keyfuse-no-such-command", "hunter2"}},
		{Command: []string{filepath.Join(t.TempDir(), "missing"), "hunter2"}},
		{Command: []string{"go", "hunter2"}, Dir: filepath.Join(t.TempDir(), "missing")},
	} {
		err := must(t)(NewExec(c)).Handle(t.Context(), aJob())
		wantVerdict(t, err, registry.VerdictRetry)
		wantContains(t, err.Error(), "can't be started", "install it on this node")
		wantWithout(t, err.Error(), "hunter2")
	}
}

func TestExecRefusesWhatItCouldNotRunAndShowsNoValue(t *testing.T) {
	command := []string{"true"}
	for name, c := range map[string]struct {
		config Exec
		says   string
	}{
		"no command":         {Exec{}, "command is empty"},
		"empty program":      {Exec{Command: []string{"", "x"}}, "command is empty"},
		"NUL in an argument": {Exec{Command: []string{"a", "b\x00"}}, "NUL byte"},
		"NUL in the dir":     {Exec{Command: command, Dir: "\x00"}, "NUL byte"},
		"no variable":        {Exec{Command: command, Env: []string{"A=1", "hunter2"}}, "variable 2 of env"},
		"nameless variable":  {Exec{Command: command, Env: []string{"=hunter2"}}, "variable 1 of env"},
		"NUL in a variable":  {Exec{Command: command, Env: []string{"A=hunter2\x00"}}, `variable "A"`},
		"our variable":       {Exec{Command: command, Env: []string{"KEYFUSE_ID_BASE64=hunter2"}}, "variable KEYFUSE_ID_BASE64"},
		"negative output":    {Exec{Command: command, MaxOutput: -1}, "kept output"},
		"too much output":    {Exec{Command: command, MaxOutput: 1 << 40}, "kept output"},
		"negative delay":     {Exec{Command: command, KillDelay: -time.Second}, "kill delay"},
	} {
		t.Run(name, func(t *testing.T) {
			handler, err := NewExec(c.config)
			if err == nil || handler != nil {
				t.Fatalf("got %v, %v", handler, err)
			}
			wantContains(t, err.Error(), c.says)
			wantWithout(t, err.Error(), "hunter2")
		})
	}
}

// FuzzJobEnv checks that any id makes variables that can be handed to a
// process, and comes back whole from exactly one of them.
func FuzzJobEnv(f *testing.F) {
	for _, id := range hostileIDs {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		job := aJob()
		job.ID = id
		env := jobEnv(job)
		if slices.ContainsFunc(env, func(v string) bool { return strings.Contains(v, "\x00") }) {
			t.Errorf("%q has a NUL byte", env)
		}
		values := make(map[string]any)
		for _, variable := range env {
			name, value, _ := strings.Cut(variable, "=")
			values[strings.ToLower(strings.TrimPrefix(name, "KEYFUSE_"))] = value
		}
		if got := unpack(t, values, "id"); got != id {
			t.Errorf("id %q came back as %q", id, got)
		}
	})
}

func TestExecIDThatIsNoTextIsInBase64Alone(t *testing.T) {
	job := aJob()
	job.ID = "a\x00b"
	env := jobEnv(job)
	if want := "KEYFUSE_ID_BASE64=" + base64.StdEncoding.EncodeToString([]byte("a\x00b")); !slices.Contains(env, want) {
		t.Errorf("%q is not in %q", want, env)
	}
	if slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "KEYFUSE_ID=") }) {
		t.Errorf("KEYFUSE_ID is set: %q", env)
	}
}
