//go:build unix

package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TLS is a Server that listens with TLS only, and asks clients for a
// certificate of its own CA. Two of them have different CAs.
type TLS struct {
	*Server

	// CAFile holds the certificate of the CA, as PEM, as all files here.
	CAFile string
	// CertFile and KeyFile hold a client's certificate and its key.
	CertFile, KeyFile string
}

// StartTLS starts a server as Start does, with certificates made for it that are
// valid for an hour; that of the server is for 127.0.0.1, so a Proxy may stand
// in between. "--tls-auth-clients", "no" in args lets clients without one in.
func StartTLS(t testing.TB, args ...string) *TLS {
	t.Helper()
	s := newServer(t, nil)
	ca := s.issue("ca", nil, &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	own := s.issue("server", ca, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	client := s.issue("client", ca, &x509.Certificate{
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	s.args = withDefaults(slices.Concat([]string{
		"--tls-ca-cert-file", ca.certFile, "--tls-cert-file", own.certFile, "--tls-key-file", own.keyFile,
		"--tls-auth-clients", "yes",
	}, args))
	s.listen = []string{"--port", "0", "--tls-port"}
	s.run(pickPort)
	return &TLS{Server: s, CAFile: ca.certFile, CertFile: client.certFile, KeyFile: client.keyFile}
}

// URL is the server's rediss:// URL, for database 0.
func (s *TLS) URL() string { return fmt.Sprintf("rediss://%s/0", s.Addr()) }

// Client is Server.Client with the client's certificate, trusting the CA alone.
func (s *TLS) Client(t testing.TB, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	config := s.Config()
	withTLS := func(o *redis.Options) { o.TLSConfig = config }
	return s.Server.Client(t, append([]func(*redis.Options){withTLS}, opts...)...)
}

// Config trusts the CA alone and holds the client's certificate. It is the
// caller's to change.
func (s *TLS) Config() *tls.Config {
	s.t.Helper()
	cert, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	return &tls.Config{RootCAs: s.roots(), Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
}

func (s *TLS) roots() *x509.CertPool {
	s.t.Helper()
	ca, err := os.ReadFile(s.CAFile)
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return pool
}

// issued is a certificate with its key, and the files in which they are.
type issued struct {
	cert              *x509.Certificate
	key               *ecdsa.PrivateKey
	certFile, keyFile string
}

// issue makes a certificate that ca signed, or itself where there is no ca, in
// the server's directory.
func (s *Server) issue(name string, ca *issued, template *x509.Certificate) *issued {
	s.t.Helper()
	out, err := sign(name, ca, template)
	if err != nil {
		s.t.Fatalf("redistest: certificate of %s: %v", name, err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(out.key)
	if err != nil {
		s.t.Fatalf("redistest: key of %s: %v", name, err)
	}
	out.certFile = s.writePEM(name+".crt", "CERTIFICATE", out.cert.Raw)
	out.keyFile = s.writePEM(name+".key", "PRIVATE KEY", key)
	return out
}

func (s *Server) writePEM(name, kind string, der []byte) string {
	s.t.Helper()
	return s.write(name, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

func sign(name string, ca *issued, template *x509.Certificate) (*issued, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template.Subject = pkix.Name{CommonName: "keyfuse test " + name}
	template.NotBefore = time.Now().Add(-time.Minute)
	template.NotAfter = time.Now().Add(time.Hour)
	parent, signer := template, key
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &issued{cert: cert, key: key}, err
}
