package config

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// maxFile bounds what is read of a config file.
const maxFile = mebibyte

// Load reads and parses the config file at path; env looks up environment
// variables, as os.LookupEnv does. What is wrong with the content comes as
// Errors; a file that can't be read as an error of package os, so that
// errors.Is(err, fs.ErrNotExist) tells whether there is one.
func Load(path string, env func(string) (string, bool)) (Config, error) {
	return load(path, env, false)
}

// LoadConnection is Load for who only talks to Redis: the sections http, defaults,
// tasks and triggers are passed over, whatever is wrong with them. So a secret
// that only the daemon has is missed by nobody else.
func LoadConnection(path string, env func(string) (string, bool)) (Config, error) {
	return load(path, env, true)
}

func load(path string, env func(string) (string, bool), connectionOnly bool) (Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("can't read the config file: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return Config{}, fmt.Errorf("can't read the config file: %w", err)
	}
	return parse(path, data, env, connectionOnly)
}

// Parse parses a config file's content; name stands for it in errors, which
// are always Errors. No data at all means Default.
func Parse(name string, data []byte, env func(string) (string, bool)) (Config, error) {
	return parse(name, data, env, false)
}

func parse(name string, data []byte, env func(string) (string, bool), connectionOnly bool) (Config, error) {
	d := &decoder{file: name, env: env, cfg: Default(), connectionOnly: connectionOnly}
	d.document(data)
	if len(d.errs) > 0 {
		slices.SortStableFunc(d.errs, byLine)
		return Config{}, d.errs
	}
	return d.cfg, nil
}

// decoder is one Parse: what it has read and what it found wrong.
type decoder struct {
	file string
	env  func(string) (string, bool)
	cfg  Config
	errs Errors

	connectionOnly bool // see LoadConnection
}

func (d *decoder) fail(line int, path, format string, args ...any) {
	d.errs = append(d.errs, Error{File: d.file, Line: line, Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (d *decoder) document(data []byte) {
	if len(data) > maxFile {
		d.fail(0, "", "is longer than %d bytes, the most a config file may have: is it the right file?", maxFile)
		return
	}
	docs, seen, err := parseYAML(data)
	switch {
	case err != nil:
		d.syntax(data, seen, err)
	case len(docs) > 1:
		d.fail(docs[1].Line, "", "a second document begins here: keep one and remove the --- between them")
	case len(docs) == 1:
		d.root(value{d: d, node: docs[0].Content[0], line: docs[0].Content[0].Line})
	}
}
