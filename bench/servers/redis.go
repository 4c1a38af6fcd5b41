package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServer is a redis-server with the repository's redis.conf: every way on Redis has
// the same durable server, which writes its log to disk each second.
type redisServer struct {
	client  *redis.Client
	monitor *monitor // nil but while commands are counted
}

func (r *redisServer) launch(_ context.Context, s *Server) error {
	binary, err := Program("redis")
	if err != nil {
		return err
	}
	conf, err := redisConf()
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	s.Addr = loopback(ports[0])
	return s.spawn(exec.Command(binary, conf,
		"--port", strconv.Itoa(ports[0]), "--bind", "127.0.0.1", "--dir", s.dir,
		"--daemonize", "no", "--logfile", "",
		"--latency-monitor-threshold", "1", // the file's 10 ms hide what is compared
		"--shutdown-on-sigterm", "nosave",
	), syscall.SIGTERM)
}

// redisConf is the path of the repository's redis.conf. The file is outside of this
// module, so it can't be embedded.
func redisConf() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		conf := filepath.Join(at, "redis.conf")
		if _, err := os.Stat(conf); err == nil {
			return conf, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no redis.conf in %s or above: run this within Keyfuse's repository", dir)
		}
	}
}

func (r *redisServer) ready(ctx context.Context, s *Server) error {
	if r.client == nil {
		r.client = redis.NewClient(&redis.Options{
			Addr: s.Addr, PoolSize: 1, MaxRetries: -1, ConnMaxIdleTime: -1, ContextTimeoutEnabled: true,
		})
	}
	pid, err := r.info(ctx, "server", "process_id")
	if err != nil {
		return err
	}
	if pid != int64(s.processes[0].pid()) {
		return errors.New("another redis-server answers")
	}
	return nil
}

func (r *redisServer) memory(ctx context.Context, _ *Server) (int64, error) {
	return r.info(ctx, "memory", "used_memory")
}

func (r *redisServer) count(ctx context.Context) (counted func(context.Context) (int64, error), err error) {
	if r.monitor, err = startMonitor(ctx, r.client.Options().Addr); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (int64, error) {
		m := r.monitor
		r.monitor = nil
		return m.counted(ctx, r.client)
	}, nil
}

func (r *redisServer) reset(ctx context.Context) error {
	return r.client.Do(ctx, "LATENCY", "RESET").Err()
}

func (r *redisServer) longest(ctx context.Context) (time.Duration, error) {
	events, err := r.client.Do(ctx, "LATENCY", "LATEST").Slice()
	if err != nil {
		return 0, err
	}
	var most int64
	for _, event := range events {
		fields, ok := event.([]any) // name, time, its latest, its longest
		if !ok || len(fields) < 4 {
			return 0, fmt.Errorf("LATENCY LATEST answered %v", event)
		}
		longest, ok := fields[3].(int64)
		if !ok {
			return 0, fmt.Errorf("LATENCY LATEST answered %v", event)
		}
		most = max(most, longest)
	}
	return time.Duration(most) * time.Millisecond, nil
}

// info is a number in a section of INFO.
func (r *redisServer) info(ctx context.Context, section, field string) (int64, error) {
	text, err := r.client.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("INFO %s has no %s", section, field)
}

func (r *redisServer) close() {
	if r.monitor != nil {
		r.monitor.close()
	}
	if r.client != nil {
		_ = r.client.Close() // the server ends next
	}
}
