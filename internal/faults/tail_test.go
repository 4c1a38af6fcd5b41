package faults

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// tail reads a daemon's events as they come.
type tail struct {
	path string
	file *os.File
	rest []byte // of a line whose end has not come
}

// read gives all whole lines that are new.
func (t *tail) read(each func(event) error) error {
	if t.file == nil {
		file, err := os.Open(t.path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the daemon has not come so far
		}
		if err != nil {
			return err
		}
		t.file = file
	}
	fresh, err := io.ReadAll(t.file)
	if err != nil {
		return err
	}
	data := append(t.rest, fresh...)
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			t.rest = bytes.Clone(data)
			return nil
		}
		data = rest
		e, err := parseEvent(line)
		if err != nil {
			return err
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

func (t *tail) close() {
	if t.file != nil {
		_ = t.file.Close() // it was only read
	}
}
