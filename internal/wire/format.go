package wire

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// ErrFormat is wrapped by errors about data of another format. Their text says what
// to do.
var ErrFormat = errors.New("the data in this Redis are of another format of Keyfuse")

// CheckFormat notes the format's version in a Redis that has none, and refuses one
// that has another.
func (s *Store) CheckFormat(ctx context.Context) error {
	found, err := s.readFormat(ctx)
	if err != nil || found != "" { // only else is something written: Redis may be full
		return errors.Join(err, judgeFormat(found, Format))
	}
	if err := s.rdb.SetNX(ctx, s.Of("format"), Format, 0).Err(); err != nil {
		return err
	}
	found, err = s.readFormat(ctx)
	return errors.Join(err, judgeFormat(found, Format))
}

// SeeFormat refuses a Redis that has another format, and writes nothing.
func (s *Store) SeeFormat(ctx context.Context) error {
	found, err := s.readFormat(ctx)
	return errors.Join(err, judgeFormat(found, Format))
}

func (s *Store) readFormat(ctx context.Context) (string, error) {
	found, err := s.rdb.Get(ctx, s.Of("format")).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", nil
	case err == nil && found == "":
		return `""`, nil // it is there, and no version
	}
	return found, err
}

// judgeFormat says whether a release that reads one format may work with data of
// the one that was found; "" if there is none yet.
func judgeFormat(found string, reads int) error {
	n, err := strconv.Atoi(found)
	switch {
	case found == "" || err == nil && n == reads:
		return nil
	case err != nil || n < 1:
		return fmt.Errorf("%w: %.40q is none: somebody has written over keyfuse:format; set it to what the daemons use", ErrFormat, found)
	case n > reads:
		return fmt.Errorf("%w: they have %d, this release reads %d: upgrade Keyfuse here, or use another database", ErrFormat, n, reads)
	}
	return fmt.Errorf("%w: they have %d, this release reads %d: work them off with the release that wrote them and then DEL keyfuse:format, or use another database", ErrFormat, n, reads)
}
