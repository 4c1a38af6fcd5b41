package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// HTTP says where the API and the dashboard listen. It holds a secret: never log it
// whole.
type HTTP struct {
	// Listen is host:port; empty means nowhere.
	Listen string
	// Token is what requests must bear; empty means none.
	Token string
	// Trace says that jobs get the traceparent of the request that schedules them.
	Trace bool
	// Given says that the file names the address, or something later did: it is
	// needed then, and else only wanted.
	Given bool
}

// DefaultListen is where a daemon listens that was told nothing.
const DefaultListen = "127.0.0.1:8787"

// minToken is how long a token must be: nobody guesses 128 bits, at four a character.
const minToken = 32

func (d *decoder) http(v value) {
	h := &d.cfg.HTTP
	before := len(v.d.errs)
	given, _ := v.section(fields{
		"listen": str(&h.Listen, func(s string) error {
			if s == "" {
				return nil
			}
			return checkListen(s)
		}),
		"token": str(&h.Token, checkToken),
		"trace": boolean(&h.Trace),
	})
	_, h.Given = given["listen"]
	if err := h.Check(); err != nil && len(v.d.errs) == before {
		v.fail("%s", err)
	}
}

// Check says what is wrong with where to listen, of which a part may come from a flag:
// whoever can reach a port must be known, unless only this machine can.
func (h HTTP) Check() error {
	if h.Listen == "" {
		return nil
	}
	if err := checkListen(h.Listen); err != nil {
		return fmt.Errorf("listen %w", err)
	}
	if h.Token != "" {
		return nil
	}
	if host, _, _ := net.SplitHostPort(h.Listen); !IsLoopback(host) {
		return errors.New("listen names an address that other machines can reach: set a token beside it, or listen on 127.0.0.1")
	}
	return nil
}

func checkListen(s string) error {
	_, port, err := net.SplitHostPort(s)
	_, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil {
		return errors.New("is not host:port: write it as in 127.0.0.1:8787")
	}
	return nil
}

func checkToken(s string) error {
	if s != "" && len(s) < minToken {
		return fmt.Errorf("is shorter than %d characters: make one with `openssl rand -hex 32`", minToken)
	}
	return nil
}

// IsLoopback says whether a host, by name or address, is this machine for itself alone.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
