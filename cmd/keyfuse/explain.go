package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// explain knows what an error means on this way to Redis.
func (e endpoint) explain(err error) error {
	const (
		wantsTLS   = "start it; if it wants TLS there, begin redis.url with rediss://, or set redis.tls beside redis.addrs"
		wantsPlain = "start it; if it wants no TLS there, begin redis.url with redis://, or remove redis.tls beside redis.addrs"
	)
	if _, known := errors.AsType[*problem](err); err == nil || known {
		return err
	}
	_, answered := errors.AsType[redis.Error](err)
	switch {
	case e.kind == kindEmbedded && errors.Is(err, syscall.ECONNREFUSED):
		return &problem{
			code: exitRedis, err: fmt.Errorf("nothing listens on %s, where the embedded Redis would be", e.opts.Addr),
			next: "start `keyfuse serve` first, or set redis.url",
		}
	case strings.Contains(err.Error(), "all sentinels specified"):
		return e.explainSentinels(err)
	case answered:
		p := explain(err)
		p.next = strings.Replace(p.next, anyUser, cmp.Or(e.opts.Username, "default"), 1)
		return p
	case e.opts.TLSConfig == nil && errors.Is(err, io.EOF):
		return unreachable(err, wantsTLS, false)
	case e.opts.TLSConfig != nil && errors.Is(err, context.DeadlineExceeded):
		return unreachable(err, wantsPlain, false)
	}
	return err
}

// explainSentinels is explain for when no sentinel says who the master is.
func (e endpoint) explainSentinels(err error) error {
	_, text, _ := strings.Cut(err.Error(), "unreachable: ") // they are not, if they refuse
	refused := func(next string) error {
		return &problem{exitRedis, errors.New("the sentinels refuse: " + text), next, true}
	}
	advice, isTLS := tlsAdvice(err)
	switch {
	case isTLS:
		return unreachable(err, advice, true)
	case errors.Is(err, redis.Nil):
		return &problem{exitRedis, fmt.Errorf("the sentinels know no master called %q", e.master), "correct redis.master_name", true}
	case strings.Contains(text, "NOAUTH"):
		return refused("set redis.sentinel_password_file or redis.sentinel_password")
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "invalid password"):
		return refused("correct redis.sentinel_username and the password of the sentinels")
	case strings.Contains(text, "NOPERM"):
		user := cmp.Or(e.sentinel.Username, "default")
		return refused("allow it there: ACL SETUSER " + user + " allchannels +sentinel|get-master-addr-by-name +sentinel|sentinels +@pubsub +@connection")
	case strings.Contains(text, "unknown command"):
		return refused("redis.addrs names no sentinels: they usually listen on port 26379")
	}
	return unreachable(err, "start them, or correct redis.addrs", false)
}
