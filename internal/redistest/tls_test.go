//go:build unix

package redistest

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestTLSServerAnswersAClientWithItsCertificate(t *testing.T) {
	s := StartTLS(t)
	if err := s.Client(t).Set(t.Context(), "order:42", "", 0).Err(); err != nil {
		t.Fatal(err)
	}
	opts, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if opts.Addr != s.Addr() || opts.TLSConfig == nil {
		t.Errorf("URL %s names %s, TLS %v", s.URL(), opts.Addr, opts.TLSConfig)
	}
	if got := s.CLI("EXISTS", "order:42"); got != "1" {
		t.Errorf("redis-cli printed %q", got)
	}
	s.Restart()
	proxied := NewProxy(t, s.Addr()).Client(t, func(o *redis.Options) { o.TLSConfig = s.Config() })
	if err := proxied.Ping(t.Context()).Err(); err != nil {
		t.Errorf("through a proxy: %v", err)
	}
}

func TestTLSServerRefusesAClientWithoutCertificate(t *testing.T) {
	for args, refused := range map[string]bool{"yes": true, "no": false} {
		s := StartTLS(t, "--tls-auth-clients", args)
		rdb := s.Client(t, once, func(o *redis.Options) { o.TLSConfig.Certificates = nil })
		err := rdb.Ping(t.Context()).Err()
		if refused != (err != nil && strings.Contains(err.Error(), "certificate required")) {
			t.Errorf("--tls-auth-clients %s: %v", args, err)
		}
	}
}

func TestTLSServerDoesNotSpeakWithoutTLS(t *testing.T) {
	s := StartTLS(t)
	if err := s.Server.Client(t, once).Ping(t.Context()).Err(); err == nil {
		t.Error("it answered")
	}
}

func TestTLSServersHaveCAsOfTheirOwn(t *testing.T) {
	a, b := StartTLS(t), StartTLS(t)
	trustsB := func(o *redis.Options) { o.TLSConfig.RootCAs = b.Config().RootCAs }
	err := a.Client(t, once, trustsB).Ping(t.Context()).Err()
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok {
		t.Errorf("a client that trusts another CA: %v", err)
	}
	ofB := func(o *redis.Options) { o.TLSConfig.Certificates = b.Config().Certificates }
	if err := a.Client(t, once, ofB).Ping(t.Context()).Err(); err == nil {
		t.Error("a certificate of another CA was let in")
	}
}
