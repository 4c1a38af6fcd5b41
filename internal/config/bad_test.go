package config

import (
	"slices"
	"strings"
	"testing"
)

// badFile is a file with all that is wrong with it, each with its line.
type badFile struct{ name, file, want string }

func TestEverythingWrongIsReportedAtOnceWithItsLine(t *testing.T) {
	for _, tc := range badFiles() {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := Parse("config.yaml", []byte(tc.file), noEnv)
			if err == nil {
				t.Fatalf("no error, got %+v", cfg)
			}
			var want []string
			for line := range strings.Lines(tc.want) {
				want = append(want, "config.yaml:"+strings.TrimSuffix(line, "\n"))
			}
			if want := strings.Join(want, "\n"); err.Error() != want {
				t.Errorf("got\n%s\nwant\n%s", err, want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret is shown:\n%s", err)
			}
		})
	}
}

func badFiles() []badFile { return slices.Concat(badSettings, badRedis, badTasks, badText) }
