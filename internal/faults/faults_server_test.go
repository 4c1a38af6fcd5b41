package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// faults are what can happen to one server.
func (s *standalone) faults() []fault {
	return []fault{
		{at: theServer, name: "redis killed", apply: s.kill},
		{at: theServer, name: "redis restarted", apply: s.restart},
		{at: theServer, name: "redis frozen", apply: s.freeze},
		{at: theServer, name: "redis frozen beyond all leases", apply: s.freeze, long: true},
		{at: theServer, name: "busy script", apply: busyScript},
		{at: theServer, name: "clients paused", apply: pauseClients},
		{at: theServer, name: "subscriptions cut", apply: cutClients("pubsub")},
		{at: theServer, name: "connections cut", apply: cutClients("normal")},
		{at: theServer, name: "output buffer overrun", apply: overrun},
		{at: theServer, name: "scripts flushed", apply: flushScripts},
		{at: theServer, name: "flags lost", apply: loseFlags},
		{at: theServer, name: "memory full", apply: fill},
		{at: theServer, name: "can't save", apply: s.failSaves},
		{at: theServer, name: "password changed", apply: changePassword},
		{at: theServer, name: "commands forbidden", apply: setUser("-eval -evalsha", "+eval +evalsha")},
		{at: theServer, name: "channels forbidden", apply: setUser("resetchannels", "&*")},
	}
}

func (s *standalone) kill(*harness, *rand.Rand, time.Duration) (func() error, error) {
	s.server.Kill()
	return s.comeBack, nil
}

func (s *standalone) restart(*harness, *rand.Rand, time.Duration) (func() error, error) {
	s.server.Stop()
	return s.comeBack, nil
}

func (s *standalone) comeBack() error {
	s.server.Restart()
	return nil
}

func (s *standalone) freeze(*harness, *rand.Rand, time.Duration) (func() error, error) {
	s.server.Pause()
	return func() error {
		s.server.Resume()
		return nil
	}, nil
}

// busyScript holds Redis up with a script of another application: it answers BUSY
// after a while, and expires nothing.
func busyScript(h *harness, _ *rand.Rand, _ time.Duration) (func() error, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() {
		ended <- h.site.admin.Eval(ctx, "while true do end", nil).Err()
	}()
	return func() error {
		defer cancel()
		if !h.watch(patience, func() bool { return h.site.admin.ScriptKill(ctx).Err() == nil || len(ended) > 0 }) {
			return errors.New("SCRIPT KILL is refused")
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
			return fmt.Errorf("the script ended with %w", err)
		}
		return nil
	}, nil
}

// pauseClients ends by itself; meanwhile Redis hears nobody.
func pauseClients(h *harness, _ *rand.Rand, hold time.Duration) (func() error, error) {
	err := h.site.admin.Do(h.t.Context(), "CLIENT", "PAUSE", hold.Milliseconds(), "ALL").Err()
	return func() error { return h.site.admin.Ping(h.t.Context()).Err() }, err
}

// cutClients closes all connections of a kind, again and again.
func cutClients(kind string) breaking {
	return func(h *harness, _ *rand.Rand, hold time.Duration) (func() error, error) {
		for end := time.Now().Add(hold); time.Now().Before(end); h.calm(200 * time.Millisecond) {
			if err := h.site.admin.ClientKillByFilter(h.t.Context(), "TYPE", kind, "SKIPME", "yes").Err(); err != nil {
				return nil, err
			}
		}
		return mended, nil
	}
}

func mended() error { return nil }

// overrun lets so many keys of others expire at once that Redis cuts off its
// subscribers, whose buffers may hold little: all that was in them is lost.
func overrun(h *harness, _ *rand.Rand, hold time.Duration) (func() error, error) {
	ctx := h.t.Context()
	set := func(limit string) error {
		return h.site.admin.ConfigSet(ctx, "client-output-buffer-limit", "pubsub "+limit).Err()
	}
	err := set("32768 16384 1")
	for end := time.Now().Add(hold); err == nil && time.Now().Before(end); h.calm(200 * time.Millisecond) {
		_, err = h.site.admin.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range 300 {
				p.Set(ctx, fmt.Sprint(strings.Repeat("others", 80), i), "", 20*time.Millisecond)
			}
			return nil
		})
	}
	return func() error { return set("33554432 8388608 60") }, err
}

func flushScripts(h *harness, _ *rand.Rand, hold time.Duration) (func() error, error) {
	for end := time.Now().Add(hold); time.Now().Before(end); h.calm(50 * time.Millisecond) {
		if err := h.site.admin.ScriptFlush(h.t.Context()).Err(); err != nil {
			return nil, err
		}
	}
	return mended, nil
}

// loseFlags is for the daemons to mend.
func loseFlags(h *harness, _ *rand.Rand, _ time.Duration) (func() error, error) {
	return mended, h.site.admin.ConfigSet(h.t.Context(), "notify-keyspace-events", "").Err()
}

func fill(h *harness, _ *rand.Rand, _ time.Duration) (func() error, error) {
	set := func(limit string) error { return h.site.admin.ConfigSet(h.t.Context(), "maxmemory", limit).Err() }
	return func() error { return set("0") }, set("1")
}

// failSaves makes a snapshot fail, after which Redis refuses writes (MISCONF).
func (s *standalone) failSaves(h *harness, _ *rand.Rand, _ time.Duration) (func() error, error) {
	dump := filepath.Join(s.server.Dir(), "dump.rdb")
	if err := os.RemoveAll(dump); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dump, 0o700); err != nil { // no file can take its place
		return nil, err
	}
	err := h.save("err")
	return func() error {
		if err := os.Remove(dump); err != nil {
			return err
		}
		return h.save("ok")
	}, err
}

// save makes snapshots until one ends as wanted.
func (h *harness) save(want string) error {
	ctx := h.t.Context()
	if !h.watch(patience, func() bool {
		info := h.site.admin.Info(ctx, "persistence").Val()
		if strings.Contains(info, "rdb_last_bgsave_status:"+want) {
			return true
		}
		_ = h.site.admin.BgSave(ctx) // refused while another one, or a rewrite of the log, is under way
		return false
	}) {
		return fmt.Errorf("no snapshot ended with %q", want)
	}
	return nil
}

// changePassword gives the daemons' user another one, and ends its connections:
// those would go on.
func changePassword(h *harness, _ *rand.Rand, _ time.Duration) (func() error, error) {
	ctx := h.t.Context()
	err := aclSet(h, "resetpass", ">another")
	if err == nil {
		err = h.site.admin.ClientKillByFilter(ctx, "USER", daemonUser).Err()
	}
	return func() error { return aclSet(h, "resetpass", ">"+password) }, err
}

// setUser changes what the daemons' user may do.
func setUser(broken, whole string) breaking {
	return func(h *harness, _ *rand.Rand, _ time.Duration) (func() error, error) {
		return func() error { return aclSet(h, strings.Fields(whole)...) }, aclSet(h, strings.Fields(broken)...)
	}
}

func aclSet(h *harness, rules ...string) error {
	args := []any{"ACL", "SETUSER", daemonUser}
	for _, rule := range rules {
		args = append(args, rule)
	}
	return h.site.admin.Do(h.t.Context(), args...).Err()
}
