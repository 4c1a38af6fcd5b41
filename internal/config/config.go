// Package config turns config.yaml into typed structs.
//
// It promises that everything wrong with a file is reported at once, each
// thing with its line, where it stands and what to do about it; that a file
// with anything wrong yields no Config at all; and that a file which says
// nothing means the defaults. The only thing reported alone is text that is not
// YAML, because nothing behind it can be read.
//
// ${NAME} in a value is replaced by that environment variable after the YAML
// has been parsed, so that a variable can never add keys. An unset one is an
// error; in ${NAME:-default} an unset or empty one gives the default; $${ is a
// plain ${. What came from the environment is a secret, and so are URLs,
// payloads and headers: no error repeats them.
//
// The file is plain YAML, one document of at most 1 MiB: aliases and tags are
// refused, because nothing here needs them and both can hide what a file says.
//
// ParseDuration, FormatDuration and ParseTime are how the whole program reads
// and writes time for people.
package config

import (
	"log/slog"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

// Embedded is the redis.url that asks for the built-in Redis.
const Embedded = "embedded"

// Config is what a config file says, checked and complete.
type Config struct {
	Redis    Redis
	Engine   Engine
	HTTP     HTTP
	Tasks    []Task    // in the file's order; their names differ
	Triggers []Trigger // in the file's order; their ids differ, and no two thresholds match an id equally
}

// Redis says where jobs are kept and which keys are jobs. It holds passwords:
// never log it whole.
type Redis struct {
	// URL is Embedded or begins with redis://, rediss:// or unix://. It is
	// empty if there are Addrs. With Cluster it names one node of many.
	URL string
	// Addrs are host:port of the sentinels, if there is a MasterName, else of
	// some nodes of a Cluster.
	Addrs []string
	// MasterName is what the sentinels call the master; empty means no Sentinel.
	MasterName string
	// Cluster says that it is a Redis Cluster.
	Cluster bool
	// Login is for Redis, beside what URL says; never both say the same.
	Login Login
	// SentinelLogin is for the sentinels.
	SentinelLogin Login
	// DB is the number of the database, unless URL says it.
	DB int
	// TLS is nil for none with Addrs. A URL of rediss:// means TLS without it too.
	TLS *TLS
	// WaitReplicas is how many replicas must confirm what is scheduled; zero
	// means none.
	WaitReplicas int
	// WaitTimeout is how long they have for it, at least a millisecond.
	WaitTimeout time.Duration
	// IDPrefix is how a key must begin to be a job; empty means any key.
	IDPrefix string
	// Notifications says what to do about Redis's notification flags.
	Notifications Notifications
}

// Login is who asks. At most one of Password and PasswordFile is set.
type Login struct {
	Username     string // empty means Redis's default user
	Password     string
	PasswordFile string // holds the password, perhaps with a line break behind it
}

// TLS names the files of a TLS connection. Empty ones are not given; Cert and
// Key are given together.
type TLS struct {
	CA         string // PEM; who may have signed Redis's certificate, in place of whom the system trusts
	Cert       string // PEM; the certificate to show
	Key        string // PEM; its private key
	ServerName string // what Redis's certificate must be for, in place of the host's name
}

// Notifications is what the daemon does about Redis's notification flags.
type Notifications string

// The ways to treat the flags.
const (
	NotificationsAuto    Notifications = "auto"    // set them if allowed, else warn
	NotificationsRequire Notifications = "require" // refuse to start without them
	NotificationsOff     Notifications = "off"     // do without: the due index alone
)

// Engine are the daemon's limits. None of them is ever negative.
type Engine struct {
	// Concurrency is how many runs this node has at a time, at least 1.
	Concurrency int
	// Lease is how long a run stays with a node that has gone silent, at
	// least a second.
	Lease time.Duration
	// ShutdownGrace is how long running handlers get at the end. Zero gives
	// them back at once.
	ShutdownGrace time.Duration
	// MaxPayload bounds a job's payload, in bytes, at least 1.
	MaxPayload int64
}

// Task is one task of the file.
type Task struct {
	Name    string
	Kind    Kind
	Options registry.Options // with the file's defaults merged in
	Line    int              // where it stands, for what only its Kind's maker finds wrong
}

// Kind is what a task does: one of the structs below, to switch on.
type Kind interface{ kind() }

// HTTPTask sends a request.
type HTTPTask struct {
	URL     string // http or https, with a host; it may hold a password
	Method  string // POST if the file doesn't say
	Secret  string // signs the request; empty means unsigned
	Headers map[string]string
}

// ExecTask runs a program, never through a shell.
type ExecTask struct {
	Command []string          // the program and its arguments; at least the program
	Dir     string            // empty means the daemon's own
	Env     map[string]string // added to the daemon's own
}

// StreamTask appends to a Redis stream.
type StreamTask struct {
	Key    string
	MaxLen int64 // about how many entries are kept; zero means all
}

// ListTask pushes onto a Redis list.
type ListTask struct {
	Key string
}

// PublishTask publishes to a Redis channel.
type PublishTask struct {
	Channel string
}

// LogTask writes a line to the daemon's log.
type LogTask struct {
	Level slog.Level
}

func (HTTPTask) kind()    {}
func (ExecTask) kind()    {}
func (StreamTask) kind()  {}
func (ListTask) kind()    {}
func (PublishTask) kind() {}
func (LogTask) kind()     {}

// Trigger is what the daemon registers when it starts: a timer, which is a job
// to schedule, or a threshold to define.
type Trigger struct {
	// ID is the job's. A threshold's is a pattern if it holds a *: exactly
	// one then, which is not its first byte and stands for any bytes.
	ID   string
	Task string // one of the config's tasks
	// At is when it is due. Zero means In after the start instead.
	At      time.Time
	In      time.Duration // zero means at once
	Payload []byte
	// Threshold is nil for a timer. With one, At and In mean nothing.
	Threshold *Threshold
}

// Threshold says after how many hits a trigger fires, and when without them.
type Threshold struct {
	Count  int64         // how many hits fire it, 1 to 1<<53 - 1
	Within time.Duration // how long they have from the first one on, at least a millisecond
	// OnTimeout is what happens if there are fewer by then: fire or drop.
	OnTimeout string
	// Mode is what hits do after a firing: repeat means that the next one
	// begins to count anew, once that those within the same window do nothing.
	Mode string
	// Debounce is how long after its latest hit the window ends instead; zero
	// means not given.
	Debounce time.Duration
	// MaxWait is how long after its first hit such a window ends at the latest,
	// at least Debounce; zero means not given, so Within.
	MaxWait  time.Duration
	MaxItems int   // how many items a firing has at most, 1 to 10000
	MaxBytes int64 // how many bytes they have together at most, 1 to 1 MiB and to MaxPayload
}

// Default returns what an empty file means.
func Default() Config {
	return Config{
		Redis: Redis{URL: Embedded, WaitTimeout: time.Second, Notifications: NotificationsAuto},
		Engine: Engine{
			Concurrency:   64,
			Lease:         15 * time.Second,
			ShutdownGrace: 25 * time.Second,
			MaxPayload:    mebibyte,
		},
		HTTP: HTTP{Listen: DefaultListen},
	}
}
