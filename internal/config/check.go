package config

import (
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// What the checks here look at may be secret, so their errors never repeat it.

var (
	errEmpty    = errors.New("is empty: give it a value, or remove the line")
	errURL      = errors.New("is not a URL: in its user name and password, write special characters as %XX")
	errReserved = errors.New("begins with class: or keyfuse:, which are Keyfuse's own: choose another")
)

// CheckRedisURL says what is wrong with a redis.url, wherever it comes from,
// without repeating it.
func CheckRedisURL(s string) error {
	if s == Embedded {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return errURL
	}
	switch u.Scheme {
	case "redis", "rediss":
		db := strings.Trim(u.Path, "/")
		if _, err := strconv.ParseUint(db, 10, 31); db != "" && err != nil {
			return errors.New("has no number of a database behind the host: write it as in redis://127.0.0.1:6379/0")
		}
	case "unix":
		if u.Path == "" {
			return errors.New("names no socket: write it as in unix:///run/redis/redis.sock")
		}
	default:
		return errors.New("is neither embedded nor a URL that begins with redis://, rediss:// or unix://")
	}
	return nil
}

// checkAddr looks at the host:port of a Redis or a sentinel.
func checkAddr(s string) error {
	host, port, err := net.SplitHostPort(s)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || portErr != nil || n == 0 {
		return errors.New("is not host:port: write it as in 10.0.0.1:6379")
	}
	return nil
}

func checkHTTPURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errURL
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("is not a URL that begins with http:// or https://")
	case u.Hostname() == "":
		return errors.New("names no host: write it as in http://127.0.0.1:9000/path")
	}
	return nil
}

func checkFilled(s string) error {
	if s == "" {
		return errEmpty
	}
	return nil
}

// checkArgument looks at what a program is started with.
func checkArgument(s string) error {
	if strings.Contains(s, "\x00") {
		return errors.New("holds a zero byte, which no program can be given: remove it")
	}
	return nil
}

func checkEnvName(s string) error {
	if s == "" || strings.ContainsAny(s, "=\x00") {
		return errors.New("is not a name for an environment variable: it must not be empty nor hold = or a zero byte")
	}
	return nil
}

// headerNames returns a check of the names of headers, which must differ in
// more than case.
func headerNames() func(string) error {
	seen := map[string]bool{}
	return func(s string) error {
		invalid := func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) }
		name := textproto.CanonicalMIMEHeaderKey(s)
		switch {
		case s == "" || strings.ContainsFunc(s, invalid):
			return errors.New("is not a name for a header: want letters, digits and -")
		case seen[name]:
			return errors.New("names the same header as a key above: remove one")
		}
		seen[name] = true
		return nil
	}
}

func checkHeaderValue(s string) error {
	if strings.ContainsAny(s, "\r\n\x00") {
		return errors.New("holds a line break or zero byte, which no header can carry: remove it")
	}
	return nil
}

func reserved(key string) bool {
	return strings.HasPrefix(key, "class:") || strings.HasPrefix(key, "keyfuse:")
}

// checkKey looks at a Redis key that a task writes to.
func checkKey(s string) error {
	if reserved(s) {
		return errReserved
	}
	return checkFilled(s)
}

const maxID = 512

func checkPrefix(s string) error {
	switch {
	case reserved(s):
		return errReserved
	case len(s) >= maxID:
		return fmt.Errorf("has %d bytes, which leaves none for the rest of an id: an id has at most %d", len(s), maxID)
	}
	return nil
}

// idBelow returns a check of job ids, which must begin with prefix.
func idBelow(prefix string) func(string) error {
	return func(s string) error {
		switch {
		case s == "" || len(s) > maxID:
			return fmt.Errorf("has %d bytes: an id has 1 to %d", len(s), maxID)
		case reserved(s):
			return errReserved
		case !strings.HasPrefix(s, prefix):
			return errors.New("does not begin with redis.id_prefix, so it would never run: add the prefix")
		}
		return nil
	}
}
