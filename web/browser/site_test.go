package browser

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/internal/redistest"
)

const token = "0123456789abcdef0123456789abcdef"

// site is a daemon on a redis-server of its own.
type site struct {
	*testing.T
	url, token string
}

// config has a task that fails for good, so that there is a dead letter.
const config = `engine: {lease: 2s, shutdown_grace: 1s}
tasks:
  note: {log: {level: debug}}
  broken: {exec: {command: ["false"]}, retries: {max: 0}}
  slow: {exec: {command: ["sleep", "600"]}}
`

func startSite(t *testing.T, token string) *site {
	t.Helper()
	server := redistest.Start(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "keyfuse")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", binary, "./cmd/keyfuse").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(config+"http: {listen: 127.0.0.1:0, token: \""+token+"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "--config", file, "--redis-url", server.URL())
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, token: token}
	s.url = s.read(cmd, out)
	return s
}

// read reads the daemon's log until it is ready, and gives where it listens.
func (s *site) read(cmd *exec.Cmd, out io.Reader) string {
	s.Helper()
	urls, ready := make(chan string, 1), make(chan struct{})
	var reading sync.WaitGroup
	var log strings.Builder
	reading.Go(func() {
		buffer := make([]byte, 4096)
		listening := regexp.MustCompile(`msg=listening http=(\S+)`)
		told, isReady := false, false
		for {
			n, err := out.Read(buffer)
			log.Write(buffer[:n])
			if m := listening.FindStringSubmatch(log.String()); m != nil && !told {
				told = true
				urls <- m[1]
			}
			if !isReady && strings.Contains(log.String(), "msg=ready") {
				isReady = true
				close(ready)
			}
			if err != nil {
				return
			}
		}
	})
	s.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		stop := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		reading.Wait()
		stop.Stop()
		if err := cmd.Wait(); err != nil {
			s.Errorf("the daemon: %v\n%s", err, log.String())
		}
		if s.Failed() {
			s.Log(log.String())
		}
	})
	select {
	case <-ready:
		return <-urls
	case <-time.After(20 * time.Second):
		s.Fatal("the daemon is not ready")
	}
	return ""
}

// call calls the API.
func (s *site) call(method, path, body string) map[string]any {
	s.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		s.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, text, err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		s.Fatal(err)
	}
	return out
}
