// Package docs_test holds the documents against the code: their Go compiles,
// and their links lead somewhere.
package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
