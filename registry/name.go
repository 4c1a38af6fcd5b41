package registry

import (
	"errors"
	"fmt"
)

// ErrBadName is wrapped by what CheckName returns.
var ErrBadName = errors.New("not a task name")

// MaxName is how long a task's name may be, in bytes.
const MaxName = 128

// CheckName says what is wrong with a task's name, or nil. A name begins with
// an ASCII letter or digit and goes on with those or any of . _ : / - so that a
// Java class path is one; it has no space, which ends the name in a class key.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("%w: %q has %d bytes, want 1 to %d", ErrBadName, clip(name), len(name), MaxName)
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == ':' || c == '/' || c == '-'):
		default:
			return fmt.Errorf("%w: %q may hold only letters, digits and . _ : / - and begins with a letter or digit", ErrBadName, name)
		}
	}
	return nil
}

func clip(s string) string {
	if len(s) > MaxName {
		return s[:MaxName] + "…"
	}
	return s
}
