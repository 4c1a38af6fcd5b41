package ways

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func keyfuseDaemonWay() way.Way {
	return way.Way{
		Name:  "keyfuse-daemon",
		What:  "Keyfuse, the daemon at its defaults: keyfuse serve with the task as a log task, whose lines are read through a pipe",
		Needs: []string{redisServer},
		Open: func(ctx context.Context, env way.Env) (way.Instance, error) {
			binary, err := buildDaemon(ctx)
			if err != nil {
				return nil, fmt.Errorf("building the daemon: %w", err)
			}
			k, err := openKeyfuse(env)
			return keyfuseDaemon{keyfuse: k, binary: binary, env: env}, err
		},
	}
}

// keyfuseDaemon schedules as the library does, and works with a daemon as its child.
//
// The task writes to the log: of what the daemon can do without a program of the user's
// that is the least. A message on a channel or a list costs a round trip a run to the
// Redis that is measured. It is told of a run when the daemon logs it, which is when it
// starts; so a run that takes its time takes it here, and not from the daemon.
type keyfuseDaemon struct {
	keyfuse
	binary string
	env    way.Env
}

// buildDaemon builds the daemon from the source that this module was built with. The
// go command does nothing if that is done already.
func buildDaemon(ctx context.Context) (string, error) {
	folder, err := cached("keyfuse")
	if err != nil {
		return "", err
	}
	source, err := call(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/keyfuse-io/keyfuse")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(folder, "keyfuse")
	_, err = call(ctx, source, "go", "build", "-o", binary, "./cmd/keyfuse")
	return binary, err
}

func (d keyfuseDaemon) Work(ctx context.Context, ready func(), run func(n int)) error {
	config := filepath.Join(d.env.Dir, "keyfuse.yaml")
	text := fmt.Sprintf("engine: {concurrency: %d}\ntasks:\n  %s:\n    log: {level: info}\n", way.Workers, way.Task)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	daemon := newChild(working, d.binary, "serve", "--config", config, "--redis-url", "redis://"+d.env.Addrs[redisServer]+"/0",
		"--log-level", "info", "--log-format", "text")
	log, err := daemon.StderrPipe()
	if err != nil {
		return err
	}
	if err := daemon.Start(); err != nil {
		return err
	}
	last, err := followLog(log, sync.OnceFunc(ready), run)
	if err != nil {
		stop() // nobody reads its log any more
	}
	if ended := daemon.Wait(); err == nil && ended != nil {
		err = fmt.Errorf("the daemon: %w: %s", ended, last)
	}
	return unlessEnded(ctx, err)
}

// followLog calls run for each run in a daemon's log, to its end, and gives its last
// line.
func followLog(log io.Reader, ready func(), run func(n int)) (last string, err error) {
	workers := newPool(run)
	defer workers.end()
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		last = lines.Text()
		if _, fired, ok := strings.Cut(last, " msg=fired id="); ok {
			n, err := nOfNamed(fired)
			if err != nil {
				return last, err
			}
			workers.jobs <- n
			continue
		}
		if strings.Contains(last, " msg=ready ") {
			ready()
		}
	}
	return last, lines.Err()
}
