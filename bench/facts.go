package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/result"
	"github.com/keyfuse-io/keyfuse/bench/servers"
)

// machine is what is measured on. What it can't tell is empty.
func machine() result.Machine {
	return result.Machine{
		CPU:    field("/proc/cpuinfo", "model name"),
		Cores:  runtime.NumCPU(),
		Memory: memory(),
		Kernel: strings.Join([]string{words("/proc/sys/kernel/ostype", 1), words("/proc/sys/kernel/osrelease", 1)}, " "),
		Begun:  time.Now().UTC().Format(time.RFC3339),
		Load:   words("/proc/loadavg", 3),
	}
}

// field is what follows a name and a colon in a file of /proc.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// words are the first words of a file.
func words(file string, n int) string {
	text, _ := os.ReadFile(file)
	all := strings.Fields(string(text))
	return strings.Join(all[:min(n, len(all))], " ")
}

func memory() string {
	kib, err := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))
}

//go:embed ways/bullmq/package.json
var bullMQ []byte

// ourselves is the name of Keyfuse among the versions.
const ourselves = "keyfuse"

// versions are those of all that takes part and is here.
func versions(ctx context.Context) map[string]string {
	all := map[string]string{"go": runtime.Version(), ourselves: commit(ctx)}
	for name, command := range map[string][]string{
		"redis":      {program("redis"), "--version"},
		"postgresql": {program("postgres"), "--version"},
		"rabbitmq":   {"rabbitmqctl", "version"}, // the server itself does not say
		"beanstalkd": {program("beanstalkd"), "-v"},
		"node":       {"node", "--version"},
	} {
		if version := firstLine(ctx, command...); version != "" {
			all[name] = version
		}
	}
	var npm struct{ Dependencies map[string]string }
	_ = json.Unmarshal(bullMQ, &npm) // a test reads it
	maps.Copy(all, npm.Dependencies)
	maps.Copy(all, modules())
	return all
}

// program is the one that package servers starts; empty if it is not installed.
func program(server string) string {
	path, _ := servers.Program(server) // the way that needs it says why
	return path
}

// modules are the versions of the libraries that ways are built on.
func modules() map[string]string {
	all := make(map[string]string)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, m := range info.Deps {
		for _, name := range []string{"go-redis", "asynq", "delayqueue", "river", "pgx", "amqp091-go", "go-beanstalk"} {
			if strings.HasSuffix(m.Path, "/"+name) || strings.Contains(m.Path, "/"+name+"/v") {
				all[m.Path] = m.Version
			}
		}
	}
	return all
}

// commit is Keyfuse's, with a mark if there are changes since.
func commit(ctx context.Context) string {
	hash := firstLine(ctx, "git", "rev-parse", "--short=12", "HEAD")
	if hash != "" && firstLine(ctx, "git", "status", "--porcelain") != "" {
		hash += ", with changes"
	}
	return hash
}

// firstLine is the first line that a command prints; empty if it can't be run.
func firstLine(ctx context.Context, command ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}
