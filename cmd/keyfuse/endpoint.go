package main

import (
	"cmp"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/keyfuse-io/keyfuse/internal/config"
)

// The embedded Redis listens on one port, so that other shells find it.
const (
	embeddedScheme = "embedded://"
	embeddedAddr   = "127.0.0.1:6380"
)

// kind is how Redis is reached.
type kind string

const (
	kindEmbedded   kind = "embedded" // in the daemon's own process
	kindStandalone kind = "standalone"
	kindSentinel   kind = "sentinel"
	kindCluster    kind = "cluster"
)

// endpoint is where Redis is, and how to get in.
type endpoint struct {
	kind     kind
	opts     redis.Options // of each connection; Addr means something to embedded and standalone
	addrs    []string      // of sentinels, or of some nodes of a Cluster
	master   string        // what the sentinels call it
	sentinel config.Login  // the password itself, never its file
}

// endpointOf reads a connection that was checked, but for what follows
// embedded:// in its URL. It reads all files once, to find what is wrong with
// them now. Errors don't repeat the URL, which may hold a password.
func endpointOf(r config.Redis) (endpoint, error) {
	if addr, ok := embeddedAt(r.URL); ok {
		if host, port, err := net.SplitHostPort(addr); err != nil || port == "" || !net.ParseIP(host).IsLoopback() {
			return endpoint{}, usagef("the embedded Redis can't listen on %q: write it as in embedded://%s", addr, embeddedAddr)
		}
		return endpoint{kind: kindEmbedded, opts: redis.Options{Addr: addr}}, nil
	}
	e := endpoint{kind: kindStandalone, addrs: r.Addrs, master: r.MasterName}
	if r.URL != "" {
		opts, err := parseURL(r.URL)
		if err != nil {
			return e, err
		}
		e.opts = *opts
	}
	switch {
	case r.MasterName != "":
		e.kind = kindSentinel
	case r.Cluster && r.URL != "":
		e.kind, e.addrs = kindCluster, []string{e.opts.Addr}
	case r.Cluster:
		e.kind = kindCluster
	}
	e.opts.DB = cmp.Or(r.DB, e.opts.DB)
	return e, cmp.Or(e.logIn(r.Login), e.logInToSentinels(r.SentinelLogin), e.secure(r.TLS))
}

// embeddedAt is where the embedded Redis listens, if the URL means that.
func embeddedAt(raw string) (addr string, ok bool) {
	if raw == config.Embedded {
		return embeddedAddr, true
	}
	return strings.CutPrefix(raw, embeddedScheme)
}

func parseURL(raw string) (*redis.Options, error) {
	opts, err := redis.ParseURL(raw)
	parsed, urlErr := url.Parse(raw)
	// A / ? or # in a password ends what is taken for the host: then the rest of it is
	// taken for something else, and stands in the error.
	if urlErr != nil || parsed.Scheme != "unix" && strings.Contains(parsed.Path+parsed.RawQuery+parsed.Fragment, "@") {
		return nil, usagef("the URL of Redis is no URL: in its user name and password, write special characters as %%XX")
	}
	if err != nil {
		return nil, usagef("the URL of Redis can't be used: %w", err)
	}
	return opts, nil
}

// dial makes a client; it does not talk to Redis yet. retries is how often a
// command is sent again, -1 for never: it may then be executed twice. The client
// of a Cluster sends it again in any case.
func (e endpoint) dial(retries int) redis.UniversalClient {
	opts := e.opts
	opts.ClientName = "keyfuse"
	opts.ContextTimeoutEnabled = true
	opts.MaxRetries = retries
	opts.DialerRetries = 1
	// A NAT may forget a connection that is idle for some minutes: the next command on
	// it would wait in vain for its read timeout.
	opts.ConnMaxIdleTime = cmp.Or(opts.ConnMaxIdleTime, time.Minute)
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch e.kind {
	case kindSentinel:
		return redis.NewFailoverClient(e.many(opts).Failover())
	case kindCluster:
		opts.MaxRetries = -1 // a node's client would multiply those
		return redis.NewClusterClient(e.many(opts).Cluster())
	}
	return redis.NewClient(&opts)
}

// many are the options for several addresses, with all that dial sets and that a
// URL may set.
func (e endpoint) many(o redis.Options) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs: e.addrs, MasterName: e.master, SentinelUsername: e.sentinel.Username, SentinelPassword: e.sentinel.Password,

		ClientName: o.ClientName, DB: o.DB, Protocol: o.Protocol, TLSConfig: o.TLSConfig,
		Username: o.Username, Password: o.Password, CredentialsProviderContext: o.CredentialsProviderContext,

		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled,

		PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout, MaxConcurrentDials: o.MaxConcurrentDials,
		MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
		PipelinePoolSize: o.PipelinePoolSize, PipelineReadBufferSize: o.PipelineReadBufferSize, PipelineWriteBufferSize: o.PipelineWriteBufferSize,

		MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
}

// LogValue says how Redis is reached, without secrets.
func (e endpoint) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("kind", string(e.kind))}
	if e.kind == kindSentinel || e.kind == kindCluster {
		attrs = append(attrs, slog.Any("addrs", e.addrs))
	} else {
		attrs = append(attrs, slog.String("addr", e.opts.Addr))
	}
	if e.master != "" {
		attrs = append(attrs, slog.String("master", e.master))
	}
	return slog.GroupValue(append(attrs, slog.Int("db", e.opts.DB), slog.Bool("tls", e.opts.TLSConfig != nil))...)
}
