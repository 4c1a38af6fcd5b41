package config

import (
	"fmt"
	"math"
	"time"
)

const (
	maxReplicas    = 100
	maxWaitTimeout = 4 * time.Second // below go-redis's read timeout, which must be longer
)

func (d *decoder) redis(v value) {
	r := &d.cfg.Redis
	given, _ := v.section(fields{
		"url":                    str(&r.URL, CheckRedisURL),
		"addrs":                  addresses(&r.Addrs),
		"master_name":            str(&r.MasterName, checkFilled),
		"cluster":                boolean(&r.Cluster),
		"username":               str(&r.Login.Username, checkFilled),
		"password":               str(&r.Login.Password, checkFilled),
		"password_file":          str(&r.Login.PasswordFile, checkFilled),
		"sentinel_username":      str(&r.SentinelLogin.Username, checkFilled),
		"sentinel_password":      str(&r.SentinelLogin.Password, checkFilled),
		"sentinel_password_file": str(&r.SentinelLogin.PasswordFile, checkFilled),
		"db":                     whole(&r.DB, 0, math.MaxInt32),
		"tls":                    tlsFiles(&r.TLS),
		"wait_replicas":          whole(&r.WaitReplicas, 0, maxReplicas),
		"wait_timeout":           waitTimeout(&r.WaitTimeout),
		"id_prefix":              str(&r.IDPrefix, checkPrefix),
		"notifications":          oneOf(&r.Notifications, NotificationsAuto, NotificationsRequire, NotificationsOff),
	})
	for broken := range r.broken(func(key string) bool { _, ok := given[key]; return ok }) {
		given[broken.key].fail("%s", broken.why)
	}
	if len(r.Addrs) > 0 {
		r.URL = ""
	}
}

// addresses reads a list of host:port.
func addresses(to *[]string) field {
	return func(v value) {
		before := len(v.d.errs)
		strs(to, checkAddr)(v)
		if len(*to) == 0 && len(v.d.errs) == before {
			v.fail("names nobody: want a list like [10.0.0.1:6379, 10.0.0.2:6379]")
		}
	}
}

func tlsFiles(to **TLS) field {
	return func(v value) {
		var t TLS
		given, _ := v.section(fields{
			"ca":          str(&t.CA, checkFilled),
			"cert":        str(&t.Cert, checkFilled),
			"key":         str(&t.Key, checkFilled),
			"server_name": str(&t.ServerName, checkFilled),
		})
		cert, hasCert := given["cert"]
		key, hasKey := given["key"]
		switch {
		case hasCert && !hasKey:
			cert.fail("has no key beside it: add the file of its private key")
		case hasKey && !hasCert:
			key.fail("has no cert beside it: add the file of its certificate")
		}
		*to = &t
	}
}

func waitTimeout(to *time.Duration) field {
	want := "a duration from 1ms to " + FormatDuration(maxWaitTimeout) + ", like 500ms"
	return parsed(to, want, func(s string) (time.Duration, error) {
		d, err := parseDurationFrom(s, time.Millisecond)
		if err == nil && d > maxWaitTimeout {
			err = fmt.Errorf("%s is too long: want %s or less", quote(s), FormatDuration(maxWaitTimeout))
		}
		return d, err
	})
}
