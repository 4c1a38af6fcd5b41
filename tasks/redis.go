package tasks

import (
	"errors"
	"fmt"
	"strings"
)

var errNoRedis = errors.New("no Redis client is given")

// checkKey refuses a key that no task may write: an empty one, and those that
// belong to Keyfuse.
func checkKey(key string) error {
	if key == "" {
		return errors.New("key is empty: name the Redis key to write to")
	}
	for _, own := range []string{"keyfuse:", "class:"} {
		if strings.HasPrefix(key, own) {
			return fmt.Errorf("key %s belongs to Keyfuse itself: choose one that does not begin with %s", quoteHead(key, 128), own)
		}
	}
	return nil
}
