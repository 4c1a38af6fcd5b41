package main

import (
	"cmp"
	"errors"
	"io/fs"
	"strings"

	"github.com/keyfuse-io/keyfuse/internal/config"
)

// env is an environment variable, or "" if it is not set.
func (a *app) env(name string) string {
	if value, ok := a.lookup(name); ok {
		return value
	}
	return ""
}

// json says whether stdout is for a program.
func (a *app) json() (bool, error) {
	switch output := cmp.Or(a.flags.output, a.env("KEYFUSE_OUTPUT"), "text"); output {
	case "json":
		return true, nil
	case "text":
		return false, nil
	default:
		return false, usagef("output %q is unknown: want text or json", output)
	}
}

// loader reads a config file: config.Load, or config.LoadConnection for commands
// that only talk to Redis.
type loader func(path string, env func(string) (string, bool)) (config.Config, error)

// settings are what a command goes by: the config file, and what the
// environment and the flags put in its place. path is empty without a file.
func (a *app) settings(load loader) (cfg config.Config, path string, err error) {
	if cfg, path, err = a.file(load); err != nil {
		return cfg, path, err
	}
	cfg.Redis, err = a.redis(cfg.Redis)
	return cfg, path, err
}

// redis is the file's connection with what flags and environment say. A URL is
// of another Redis: what the file says of where its own is, and who asks there,
// goes, so that no password gets to where it does not belong. The files for TLS
// stay, if the URL wants any.
func (a *app) redis(r config.Redis) (config.Redis, error) {
	if raw := cmp.Or(a.flags.redisURL, a.env("KEYFUSE_REDIS_URL")); raw != "" {
		r.URL, r.Addrs, r.MasterName, r.Cluster, r.DB = raw, nil, "", false, 0
		r.Login, r.SentinelLogin = config.Login{}, config.Login{}
		if !strings.HasPrefix(raw, "rediss:") {
			r.TLS = nil
		}
	}
	if file := a.env("KEYFUSE_REDIS_PASSWORD_FILE"); file != "" {
		r.Login.Password, r.Login.PasswordFile = "", file
	}
	r.IDPrefix = cmp.Or(a.env("KEYFUSE_ID_PREFIX"), r.IDPrefix)
	if _, ok := embeddedAt(r.URL); ok {
		r.Login, r.WaitReplicas = config.Login{}, 0 // it asks nobody, and has none
		return r, nil
	}
	if err := r.Check(); err != nil {
		return r, usagef("%w", err)
	}
	return r, nil
}

const defaultConfig = "config.yaml"

// file reads the config file. One that was asked for must be there.
func (a *app) file(load loader) (config.Config, string, error) {
	named := cmp.Or(a.flags.config, a.env("KEYFUSE_CONFIG"))
	path := cmp.Or(named, defaultConfig)
	cfg, err := load(path, a.lookup)
	switch {
	case err == nil:
		return cfg, path, nil
	case named == "" && errors.Is(err, fs.ErrNotExist):
		return config.Default(), "", nil
	}
	return cfg, path, failf(exitFailed, "%w", err)
}
