package main

import (
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/internal/config"
)

func TestNoPartOfAPasswordIsInTheErrorOfAURL(t *testing.T) {
	for _, url := range []string{
		"redis://ann:12?secret@127.0.0.1:6379/0", "redis://ann:12#secret@127.0.0.1:6379/0", "redis://ann:secret%zz@127.0.0.1:6379/0",
		"redis://ann:12/secret@127.0.0.1:6379/0", "redis://ann:[secret@127.0.0.1:6379/0", "rediss://ann:?secret=1@127.0.0.1",
	} {
		_, err := endpointOf(config.Redis{URL: url})
		if err == nil {
			t.Errorf("%s is taken", url)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
