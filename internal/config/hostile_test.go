package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

func TestABombOfAliasesIsRefused(t *testing.T) {
	var file strings.Builder
	file.WriteString("tasks:\n  a0: &a0 {exec: {command: [x]}}\n")
	for i := range 30 {
		fmt.Fprintf(&file, "  a%d: &a%d {exec: {command: [%s]}}\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	file.WriteString("  loop: &loop {exec: {command: [*loop]}}\n  whole: *a30\n")
	_, err := Parse("f", []byte(file.String()), noEnv)
	list, ok := errors.AsType[Errors](err)
	if !ok || len(list) != 302 || list[301].Line != 34 {
		t.Errorf("got %d errors, want one an alias: %.500v", len(list), err)
	}
}

func TestTheLineOfASyntaxErrorIsFoundInALongFile(t *testing.T) {
	good := strings.Repeat("# a line\n", 700)
	_, err := Parse("f", []byte(good+"redis:\n  url: x\n id_prefix: y\n"+good), noEnv)
	list, _ := errors.AsType[Errors](err)
	if len(list) != 1 || list[0].Line != 703 {
		t.Errorf("got %v, want line 703", err)
	}
}

func TestTheLineOfAQuoteThatIsClosedNowhereInALongFileIsFound(t *testing.T) {
	long := strings.Repeat("# a line\n", 2000)
	_, err := Parse("f", []byte(long+"redis: \"x\n"+long), noEnv)
	list, _ := errors.AsType[Errors](err)
	if len(list) != 1 || list[0].Line != 2001 {
		t.Errorf("got %v, want line 2001", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, bad := range badFiles() {
		f.Add([]byte(bad.file))
	}
	f.Add([]byte(shipped(f)))
	f.Add([]byte("redis: {url: \"${A}\", id_prefix: '${B:-x}'}\ntasks: {a: {http: {url: \"http://${C}\"}}}\n"))
	f.Add([]byte("tasks: {a: {log: }}\ntriggers: [{id: 'x:*', task: a, threshold: {count: 9, within: 1m, debounce: 5s, max_wait: 9s, max_bytes: 1KiB}}]\n"))
	for _, bad := range badRedis { // without their lines, some are good
		for line := range strings.Lines(bad.file) {
			f.Add([]byte(strings.Replace(bad.file, line, "", 1)))
		}
	}
	const secret = "k7Zq-secret\n0s"
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := Parse("f", data, func(name string) (string, bool) { return secret, name != "UNSET" })
		if err == nil {
			checkUsable(t, cfg)
			return
		}
		list, ok := errors.AsType[Errors](err)
		if !ok || len(list) == 0 || strings.Count(err.Error(), "\n") != len(list)-1 {
			t.Fatalf("not one line an error: %q", err)
		}
		if strings.Contains(err.Error(), "k7Zq") && !strings.Contains(string(data), "k7Zq") {
			t.Errorf("a secret is shown: %q", err)
		}
		for i, e := range list {
			if e.Line < 1 && len(data) <= maxFile || i > 0 && e.Line < list[i-1].Line {
				t.Errorf("line %d behind %d others: %v", e.Line, i, err)
			}
		}
	})
}

var nop = registry.Func(func(context.Context, registry.Job) error { return nil })

// checkUsable fails unless everything in cfg may be taken as it is: the
// registry panics at options it can't accept.
func checkUsable(t *testing.T, cfg Config) {
	t.Helper()
	checkRedis(t, cfg.Redis)
	reg := registry.New()
	for _, task := range cfg.Tasks {
		if task.Kind == nil {
			t.Errorf("task %q has no kind", task.Name)
		}
		reg.Register(task.Name, nop, task.Options)
	}
	ids := map[string]bool{}
	for _, trigger := range cfg.Triggers {
		if _, ok := reg.Lookup(trigger.Task); !ok || ids[trigger.ID] || trigger.ID == "" || trigger.In < 0 {
			t.Errorf("trigger %+v", trigger)
		}
		ids[trigger.ID] = true
		if trigger.Threshold != nil {
			checkThreshold(t, trigger, cfg.Engine.MaxPayload)
		}
	}
	if e := cfg.Engine; e.Concurrency < 1 || e.Lease <= 0 || e.ShutdownGrace < 0 || e.MaxPayload < 1 {
		t.Errorf("engine %+v", e)
	}
}

// checkRedis fails unless r says in one way where Redis is.
func checkRedis(t *testing.T, r Redis) {
	t.Helper()
	where := (r.URL != "") != (len(r.Addrs) > 0) && (r.MasterName == "" || r.URL == "" && !r.Cluster)
	several := len(r.Addrs) == 0 || r.Cluster || r.MasterName != ""
	who := r.Login.Password == "" || r.Login.PasswordFile == ""
	wait := r.WaitReplicas >= 0 && r.WaitReplicas <= maxReplicas && r.WaitTimeout >= time.Millisecond && r.WaitTimeout <= maxWaitTimeout
	if !where || !several || !who || !wait || r.DB < 0 || r.Cluster && r.DB > 0 || r.Check() != nil {
		t.Errorf("redis %+v: %v", r, r.Check())
	}
}

// checkThreshold fails unless trigger keeps to what Trigger and Threshold promise.
func checkThreshold(t *testing.T, trigger Trigger, maxPayload int64) {
	t.Helper()
	c := trigger.Threshold
	modes := slices.Contains([]string{"fire", "drop"}, c.OnTimeout) && slices.Contains([]string{"repeat", "once"}, c.Mode)
	counts := c.Count >= 1 && c.Count < 1<<53 && c.Within >= time.Millisecond && c.Within <= MaxDuration
	longest := cmp.Or(c.MaxWait, c.Within)
	waits := c.Debounce >= 0 && c.Debounce <= longest && longest <= MaxDuration && (c.Debounce > 0 || c.MaxWait == 0)
	bounds := c.MaxItems >= 1 && c.MaxItems <= 10_000 && c.MaxBytes >= 1 && c.MaxBytes <= min(maxPayload, 1<<20)
	pattern := strings.LastIndex(trigger.ID, "*") == strings.Index(trigger.ID, "*") && trigger.ID[0] != '*'
	if !modes || !counts || !waits || !bounds || !pattern || !trigger.At.IsZero() || trigger.In != 0 {
		t.Errorf("threshold %q: %+v", trigger.ID, c)
	}
}
