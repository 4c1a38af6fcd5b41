// Package docs_test holds the documents against the code: their Go compiles,
// and their links lead somewhere.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

const root = "../.."

func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d documents, %v", len(paths), err)
	}
	texts := make(map[string]string)
	for _, path := range append(paths, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	return texts
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

func TestGoInDocumentsCompiles(t *testing.T) {
	found := 0
	for path, text := range documents(t) {
		for _, block := range goBlock.FindAllStringSubmatch(text, -1) {
			found++
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(block[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "vet", file)
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", path, err, out)
			}
		}
	}
	if found == 0 {
		t.Error("README has no Go in it any more")
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	for path, text := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

var testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)")

func TestDocumentsNameTestsThatExist(t *testing.T) {
	for path, text := range documents(t) {
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			cmd := exec.CommandContext(t.Context(), "grep", "-rqE", "--include=*_test.go", "func "+m[1]+`\(`, root)
			if err := cmd.Run(); err != nil {
				t.Errorf("%s names %s, which is no test", path, strings.TrimSpace(m[1]))
			}
		}
	}
}

// TestTheTagsOfPartitionsAreAsDocumented: clients in other languages copy them.
func TestTheTagsOfPartitionsAreAsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "wire-format.md"))
	if err != nil {
		t.Fatal(err)
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"192.0.2.1:1"}})
	defer cluster.Close() //nolint:errcheck // it was never connected
	space, err := wire.NewSpace(cluster)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for i, store := range space.All() {
		tag := store.Fuse("")
		if row := fmt.Sprintf("| %d | `%s` |", i, tag); !strings.Contains(string(text), row) {
			t.Errorf("the table lacks %s", row)
		}
		listed = append(listed, strings.Trim(tag, "{}"))
	}
	half := len(listed) / 2
	for _, line := range []string{strings.Join(listed[:half], " "), strings.Join(listed[half:], " ")} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the program in Python lacks %q", line)
		}
	}
	example := space.Of("order:42").Fuse("order:42")
	if !strings.Contains(string(text), "SET "+example+" ") {
		t.Errorf("order:42 is %s", example)
	}
}

var row = regexp.MustCompile(`\*([^*|]+)\*`)

// TestDocumentsNameRowsOfTestsThatExist: what stands between two * in a table of
// failures is how a row of a table of tests begins.
func TestDocumentsNameRowsOfTestsThatExist(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			var text []byte
			text, err = os.ReadFile(path)
			tests.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		for _, m := range row.FindAllStringSubmatch(line, -1) {
			if !strings.HasPrefix(line, "| ") {
				continue
			}
			found++
			if name := strings.TrimSuffix(m[1], "…"); !strings.Contains(tests.String(), `"`+strings.TrimSpace(name)) {
				t.Errorf("guarantees.md names %q, which begins no row", m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d rows are named", found)
	}
}
