package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// rabbitServer is a RabbitMQ at its defaults, without plugins: an Erlang machine, and an
// epmd of its own, which Erlang would otherwise share with, and leave to, all others.
type rabbitServer struct{ silent }

// The processes in the order in which they are started.
const (
	epmdProcess = iota
	erlangProcess
)

func (rabbitServer) launch(_ context.Context, s *Server) error {
	binary, err := Program("rabbitmq")
	if err != nil {
		return err
	}
	epmd, err := find("rabbitmq-server", "epmd")
	if err != nil {
		return err
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	s.Addr = fmt.Sprintf("amqp://guest:guest@%s/", loopback(ports[0]))
	environment, err := rabbitEnvironment(s.dir, ports[0], ports[1], ports[2])
	if err != nil {
		return err
	}
	names := exec.Command(epmd, "-address", "127.0.0.1", "-port", strconv.Itoa(ports[2]))
	names.Env, names.Dir = environment, s.dir
	if err := s.spawn(names, syscall.SIGTERM); err != nil {
		return err
	}
	server := exec.Command(binary)
	server.Env, server.Dir = environment, s.dir
	return s.spawn(server, syscall.SIGTERM)
}

// rabbitEnvironment replaces all that RabbitMQ's own environment may say.
func rabbitEnvironment(dir string, port, dist, epmd int) ([]string, error) {
	plugins, conf := filepath.Join(dir, "plugins"), filepath.Join(dir, "rabbitmq")
	files := map[string]string{
		plugins:        "[].\n",
		conf + ".conf": fmt.Sprintf("listeners.tcp.default = 127.0.0.1:%d\n", port),
	}
	for file, text := range files {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	var kept []string
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "RABBITMQ_") && !strings.HasPrefix(setting, "ERL_") {
			kept = append(kept, setting)
		}
	}
	return append(kept,
		"HOME="+dir, // of the Erlang cookie
		fmt.Sprintf("RABBITMQ_NODENAME=bench%d@localhost", port),
		fmt.Sprintf("RABBITMQ_NODE_PORT=%d", port),
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", dist),
		fmt.Sprintf("ERL_EPMD_PORT=%d", epmd),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_MNESIA_BASE="+filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE="+dir,
		"RABBITMQ_LOGS=-",
		"RABBITMQ_CONFIG_FILE="+conf,
		"RABBITMQ_CONF_ENV_FILE="+filepath.Join(dir, "none"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+plugins,
		// Erlang then takes the place of the shell that starts it, and gets the signals.
		"RUNNING_UNDER_SYSTEMD=true",
	), nil
}

// ready reads the log, since another server might answer on the port.
func (rabbitServer) ready(_ context.Context, s *Server) error {
	text, err := os.ReadFile(s.log())
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte("Server startup complete")) {
		return errors.New("it is starting")
	}
	return nil
}

func (rabbitServer) memory(_ context.Context, s *Server) (int64, error) {
	return resident(s.processes[erlangProcess].pid())
}

func (rabbitServer) close() {}
