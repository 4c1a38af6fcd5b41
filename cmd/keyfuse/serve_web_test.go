package main

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/config"
)

// siteOn opens a site beside a Redis that nobody needs here.
func siteOn(t *testing.T, listen string, given bool) (*site, string, error) {
	t.Helper()
	var log bytes.Buffer
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	cfg := config.Default()
	cfg.HTTP.Listen, cfg.HTTP.Given = listen, given
	s, err := openSite(cfg, rdb, slog.New(slog.NewTextHandler(&log, nil)))
	return s, log.String(), err
}

func TestASiteAnswersUntilItIsClosed(t *testing.T) {
	s, log, err := siteOn(t, "127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log, "msg=listening http="+s.url()) {
		t.Errorf("log: %s", log)
	}
	for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusServiceUnavailable, "/metrics": http.StatusOK} {
		resp, err := http.Get(s.url() + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != want {
			t.Errorf("%s: %d, %v", path, resp.StatusCode, err)
		}
	}
	url := s.url()
	s.close()
	if resp, err := http.Get(url + "/livez"); err == nil {
		_ = resp.Body.Close()
		t.Error("it answers after it was closed")
	}
}

func TestAPortThatIsTakenStopsOnlyADaemonThatWasToldIt(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if s, log, err := siteOn(t, busy.Addr().String(), false); err != nil || s.addr != nil || !strings.Contains(log, "no dashboard and no API") {
		t.Errorf("by default: %v, %s", err, log)
	}
	if _, _, err := siteOn(t, busy.Addr().String(), true); err == nil || explain(err).code != exitFailed || !strings.Contains(err.Error(), "--http") {
		t.Errorf("when it was told: %v", err)
	}
	if s, _, err := siteOn(t, "", true); err != nil || s.addr != nil || s.invitation() != "" {
		t.Errorf("off: %v", err)
	}
}

func TestOtherMachinesNeedAToken(t *testing.T) {
	for _, args := range [][]string{{"--http", ":8787"}, {"--http", "0.0.0.0:0"}, {"--http", "8787"}} {
		var out, complaint bytes.Buffer
		args = append([]string{"keyfuse", "serve", "--redis-url", "redis://127.0.0.1:1"}, args...)
		if code := run(t.Context(), args, func(string) (string, bool) { return "", false }, strings.NewReader(""), &out, &complaint); code != exitUsage {
			t.Errorf("%q: exit code %d: %s", args, code, complaint.String())
		}
	}
}
