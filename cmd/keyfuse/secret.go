package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/keyfuse-io/keyfuse/internal/config"
)

// logIn puts into each new connection who asks. A file's password is read for
// each, so that a changed one needs no restart.
func (e *endpoint) logIn(l config.Login) error {
	e.opts.Username = cmp.Or(l.Username, e.opts.Username)
	e.opts.Password = cmp.Or(l.Password, e.opts.Password)
	if l.PasswordFile == "" {
		return nil
	}
	name := e.opts.Username
	e.opts.CredentialsProviderContext = func(context.Context) (string, string, error) {
		password, err := readSecret("redis.password_file", l.PasswordFile)
		return name, password, err
	}
	_, _, err := e.opts.CredentialsProviderContext(context.Background())
	return err
}

// logInToSentinels reads the file of their password once: go-redis asks nobody
// for theirs.
func (e *endpoint) logInToSentinels(l config.Login) error {
	if l.PasswordFile != "" {
		var err error
		if l.Password, err = readSecret("redis.sentinel_password_file", l.PasswordFile); err != nil {
			return err
		}
	}
	e.sentinel = l
	return nil
}

// maxSecret bounds what is read of a password's file.
const maxSecret = 64 << 10

// readSecret reads a password without the line break behind it. Its errors name
// the file.
func readSecret(key, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fileProblem(key, err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil {
		return "", fileProblem(key, err)
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case password == "":
		return "", fileProblem(key, fmt.Errorf("%s is empty", path))
	case len(data) > maxSecret:
		return "", fileProblem(key, fmt.Errorf("%s is longer than any password", path))
	}
	return password, nil
}

func fileProblem(key string, err error) error {
	return &problem{code: exitFailed, err: fmt.Errorf("%s: %w", key, err), next: "correct it in the config file, or the file that it names"}
}

// secure puts into the connections what the files of TLS say. The client's
// certificate is read again for each new one, since such files are renewed.
func (e *endpoint) secure(files *config.TLS) error {
	if e.kind == kindCluster && e.opts.TLSConfig != nil {
		e.opts.TLSConfig.ServerName = "" // each node has its own
	}
	if files == nil {
		return nil
	}
	if e.opts.TLSConfig == nil {
		e.opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	conf := e.opts.TLSConfig
	conf.ServerName = cmp.Or(files.ServerName, conf.ServerName)
	if files.CA != "" {
		var err error
		if conf.RootCAs, err = readCA(files.CA); err != nil {
			return err
		}
	}
	if files.Cert == "" {
		return nil
	}
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			return nil, fileProblem("redis.tls.cert and key", err)
		}
		return &cert, nil
	}
	_, err := conf.GetClientCertificate(nil)
	return err
}

func readCA(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fileProblem("redis.tls.ca", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fileProblem("redis.tls.ca", errors.New(path+" holds no certificate in PEM"))
	}
	return pool, nil
}
