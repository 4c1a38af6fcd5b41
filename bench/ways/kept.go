package ways

import (
	"errors"
	"io"
	"sync"
)

// kept are connections for one goroutine at a time, which stay open from call to call.
type kept[T io.Closer] struct {
	open func() (T, error)

	mu   sync.Mutex
	idle []T
}

// with does something with a connection, and keeps it unless that failed.
func (k *kept[T]) with(do func(conn T) error) error {
	conn, err := k.take()
	if err != nil {
		return err
	}
	if err := do(conn); err != nil {
		_ = conn.Close() // the first error says why
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.idle = append(k.idle, conn)
	return nil
}

// take takes the one that was used last, or opens another.
func (k *kept[T]) take() (T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := len(k.idle) - 1
	if last < 0 {
		return k.open()
	}
	conn := k.idle[last]
	k.idle = k.idle[:last]
	return conn, nil
}

// Close closes those that nobody uses.
func (k *kept[T]) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, conn := range k.idle {
		errs = append(errs, conn.Close())
	}
	k.idle = nil
	return errors.Join(errs...)
}
