package ways

import (
	"bufio"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/keyfuse-io/keyfuse/bench/servers"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

func bullMQWay() way.Way {
	return way.Way{
		Name:  "bullmq",
		What:  "BullMQ on Node.js and ioredis, concurrency 64, jobs removed when they are done; its worker tells of runs through a pipe, all that start at a moment in one line, and a job is done once the answer has come back",
		Needs: []string{redisServer},
		Open:  openBullMQ,
	}
}

// bullMQ schedules through one Node.js process, and works with another.
type bullMQ struct {
	folder     string
	host, port string

	mu      sync.Mutex // one request at a time
	node    *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Reader
	said    *tail // what it wrote to stderr
}

func openBullMQ(ctx context.Context, env way.Env) (way.Instance, error) {
	folder, err := prepareBullMQ(ctx)
	if err != nil {
		return nil, fmt.Errorf("bullmq: %w", err)
	}
	q := &bullMQ{folder: folder, said: &tail{}}
	if q.host, q.port, err = net.SplitHostPort(env.Addrs[redisServer]); err != nil {
		return nil, err
	}
	// It ends with its input: not with ctx, which may be that of the opening alone.
	q.node = newChild(context.WithoutCancel(ctx), "node", q.script(), "schedule", q.host, q.port)
	q.node.Stderr = q.said
	if q.ask, err = q.node.StdinPipe(); err != nil {
		return nil, err
	}
	printed, err := q.node.StdoutPipe()
	if err != nil {
		return nil, err
	}
	q.answers = bufio.NewReader(printed)
	if err := q.node.Start(); err != nil {
		return nil, err
	}
	if err := q.request(ctx, way.Jobs{}, 1); err != nil { // it is connected when it answers
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (q *bullMQ) script() string { return filepath.Join(q.folder, bullMQScript) }

// Single makes the calls in Node.js: only what to schedule goes through the pipe.
func (q *bullMQ) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return q.request(ctx, jobs, callers)
}

// Bulk is addBulk.
func (q *bullMQ) Bulk(ctx context.Context, jobs way.Jobs) error { return q.request(ctx, jobs, 0) }

// request waits for the answer; if ctx ends before, so does the process, and all later
// requests fail.
func (q *bullMQ) request(ctx context.Context, jobs way.Jobs, callers int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer context.AfterFunc(ctx, func() { _ = q.node.Process.Kill() })()
	err := json.NewEncoder(q.ask).Encode(map[string]any{
		"callers": callers, "from": jobs.From, "count": jobs.Count,
		"first": float64(jobs.First.UnixMicro()) / 1000, "step": float64(jobs.Step) / float64(time.Millisecond),
	})
	if err != nil {
		return err
	}
	answer, err := q.answers.ReadString('\n')
	if err != nil {
		return fmt.Errorf("no answer from Node.js: %w", err)
	}
	if answer = strings.TrimSpace(answer); answer != "ok" {
		return errors.New(answer)
	}
	return nil
}

// Close lets the scheduling process end.
func (q *bullMQ) Close() error {
	_ = q.ask.Close() // if that fails, it has ended
	if err := q.node.Wait(); err != nil {
		return fmt.Errorf("node: %w: %s", err, q.said.text)
	}
	return nil
}

func (q *bullMQ) Work(ctx context.Context, ready func(), run func(n int)) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	said := &tail{}
	node := newChild(working, "node", q.script(), "work", q.host, q.port, strconv.Itoa(way.Workers))
	node.Stderr = said
	ended, err := node.StdinPipe()
	if err != nil {
		return err
	}
	started, err := node.StdoutPipe()
	if err != nil {
		return err
	}
	if err := node.Start(); err != nil {
		return err
	}
	if err = bridge(started, ended, ready, run); err != nil {
		stop() // it would wait for answers
	}
	if failed := node.Wait(); err == nil && failed != nil {
		err = fmt.Errorf("node: %w: %s", failed, said.text)
	}
	return unlessEnded(ctx, err)
}

// bridge runs the jobs whose numbers come, and writes the numbers of those that have
// ended. A run is noted when its number has come through the pipe: some tenths of a
// millisecond after it started in Node.js.
func bridge(started io.Reader, ended io.Writer, ready func(), run func(n int)) error {
	done := make(chan int, way.Workers)
	var answering sync.WaitGroup
	answering.Go(func() { answer(ended, done) })
	defer answering.Wait()
	defer close(done)
	workers := newPool(func(n int) {
		run(n)
		done <- n
	})
	defer workers.end()
	lines := bufio.NewScanner(started)
	for lines.Scan() {
		if lines.Text() == "ready" {
			ready()
			continue
		}
		for text := range strings.FieldsSeq(lines.Text()) {
			n, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("node printed %.80q", lines.Text())
			}
			workers.jobs <- n
		}
	}
	return lines.Err()
}

// answer writes numbers, as many a line as there are. If that fails, Node.js has ended,
// and is asked why when it is waited for.
func answer(to io.Writer, done <-chan int) {
	for n := range done {
		runtime.Gosched() // more runs of that moment end before: each line costs Node.js a read
		line := strconv.AppendInt(nil, int64(n), 10)
		for range len(done) {
			line = strconv.AppendInt(append(line, ' '), int64(<-done), 10)
		}
		_, _ = to.Write(append(line, '\n'))
	}
}

const bullMQScript = "bullmq.mjs"

//go:embed bullmq/package.json bullmq/package-lock.json bullmq/bullmq.mjs
var bullMQFiles embed.FS

// prepareBullMQ gives a folder with the script and what npm ci installs for it. That is
// kept in the user's cache, by the content of the files, and so done once.
func prepareBullMQ(ctx context.Context) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%w: %w", servers.ErrMissing, err)
		}
	}
	cache, err := cached("bullmq")
	if err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made) //nolint:errcheck // it has another name by then, or is in nobody's way
	name, err := unpackBullMQ(made)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, name)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	// Scripts that run at the installation are of no use to it, and so are not run.
	if _, err := call(ctx, made, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", fmt.Errorf("%w: %w; it installs itself where npm can reach its registry", servers.ErrMissing, err)
	}
	if err := os.Rename(made, folder); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return folder, nil
}

// unpackBullMQ writes the files to a folder, and gives a name that is their content's.
func unpackBullMQ(folder string) (name string, err error) {
	files, err := bullMQFiles.ReadDir("bullmq")
	if err != nil {
		return "", err
	}
	content := sha256.New()
	for _, file := range files {
		text, err := bullMQFiles.ReadFile("bullmq/" + file.Name())
		if err != nil {
			return "", err
		}
		content.Write(text)
		if err := os.WriteFile(filepath.Join(folder, file.Name()), text, 0o600); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(content.Sum(nil))[:16], nil
}
