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
	cfg.Redis.URL = cmp.Or(a.flags.redisURL, a.env("KEYFUSE_REDIS_URL"), cfg.Redis.URL)
	cfg.Redis.IDPrefix = cmp.Or(a.env("KEYFUSE_ID_PREFIX"), cfg.Redis.IDPrefix)
	if strings.HasPrefix(cfg.Redis.URL, embeddedScheme) {
		return cfg, path, nil
	}
	if err := config.CheckRedisURL(cfg.Redis.URL); err != nil {
		return cfg, path, usagef("the URL of Redis %w", err)
	}
	return cfg, path, nil
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
