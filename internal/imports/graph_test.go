package imports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// graph holds packages by import path, as builds without tests see them.
type graph map[string]pkg

type pkg struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

// load lists the module's packages and all they reach. Packages that don't
// compile are listed with what they import.
func load(t *testing.T) graph {
	t.Helper()
	dependOnSources(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json=ImportPath,Imports,Standard", "./...")
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.String())
	}
	g, err := parse(strings.NewReader(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func parse(list io.Reader) (graph, error) {
	g := make(graph)
	for dec := json.NewDecoder(list); ; {
		var p pkg
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return g, nil
		case err != nil:
			return nil, fmt.Errorf("what go list printed: %w", err)
		}
		g[p.ImportPath] = p
	}
}

// dependOnSources reads the module's folders, so that go test's cache, which
// knows what this process opens but not what go list does, runs the tests again
// when a file changed.
func dependOnSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// own are the module's packages in a room, sorted; the empty room is all.
func (g graph) own(room string) []string {
	var paths []string
	for path := range g {
		if within(path, module) && within(path, expand(room)) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// chain is a shortest way by imports from one package to the first that
// matches, both included; nil if there is none.
func (g graph) chain(from string, matches func(path string) bool) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		here := queue[0]
		if here != from && matches(here) {
			return trail(cameFrom, here)
		}
		for _, next := range g[here].Imports {
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = here
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func trail(cameFrom map[string]string, to string) []string {
	var way []string
	for at := to; at != ""; at = cameFrom[at] {
		way = append(way, at)
	}
	slices.Reverse(way)
	return way
}

// expand turns a room into its import path; others are import paths already.
func expand(name string) string {
	switch {
	case name == "":
		return module
	case strings.Contains(strings.Split(name, "/")[0], "."), name == "testing":
		return name
	}
	return module + "/" + name
}

// within reports whether path is parent or lies below it.
func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

func withinAny(path string, parents []string) bool {
	return slices.ContainsFunc(parents, func(p string) bool { return within(path, expand(p)) })
}
