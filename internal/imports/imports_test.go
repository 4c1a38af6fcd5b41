package imports

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
)

// broken returns a line for each broken rule: the rule, and the chain of
// imports that breaks it.
func broken(g graph) []string {
	return slices.Concat(brokenAllowed(g), brokenOwners(g), brokenReach(g))
}

func brokenAllowed(g graph) []string {
	var lines []string
	for _, room := range slices.Sorted(maps.Keys(allowed)) {
		may := append([]string{room}, allowed[room]...)
		for _, from := range g.own(room) {
			for _, to := range g[from].Imports {
				if !g[to].Standard && !withinAny(to, may) {
					lines = append(lines, line(room+" may import only "+list(allowed[room]), []string{from, to}))
				}
			}
		}
	}
	return lines
}

func brokenOwners(g graph) []string {
	var lines []string
	for _, owned := range slices.Sorted(maps.Keys(ownedBy)) {
		for _, from := range g.own("") {
			if withinAny(from, ownedBy[owned]) {
				continue
			}
			for _, to := range g[from].Imports {
				if within(to, owned) {
					lines = append(lines, line(owned+" is imported only by "+strings.Join(ownedBy[owned], ", "), []string{from, to}))
				}
			}
		}
	}
	return lines
}

func brokenReach(g graph) []string {
	var lines []string
	for _, room := range lean {
		lines = append(lines, reached(g, room, heavy)...)
	}
	return append(lines, reached(g, "", testOnly)...)
}

// reached returns a line for each of the targets that a room's packages reach.
func reached(g graph, room string, targets []string) []string {
	var lines []string
	for _, target := range targets {
		for _, from := range g.own(room) {
			if within(from, expand(target)) {
				continue
			}
			if way := g.chain(from, func(path string) bool { return within(path, expand(target)) }); way != nil {
				lines = append(lines, line(cmp.Or(room, "what users build")+" must not reach "+target, way))
			}
		}
	}
	return lines
}

func line(rule string, chain []string) string {
	return rule + ": " + strings.Join(chain, " → ")
}

func list(names []string) string {
	return strings.Join(append([]string{"the standard library"}, names...), ", ")
}

func TestPackagesImportOnlyWhatTheirRoomMay(t *testing.T) {
	for _, line := range broken(load(t)) {
		t.Error(line)
	}
}

// The test of the test breaks each kind of rule in a small graph.
func TestBrokenRulesAreReportedWithTheirChain(t *testing.T) {
	const p = module + "/"
	tests := map[string]struct {
		imports map[string][]string // by package; what has no dot or slash is standard
		want    []string
	}{
		"what is allowed": {
			map[string][]string{
				p + "registry":    {"fmt"},
				p + "engine":      {p + "registry", p + "internal/wire", goRedis},
				p + "tasks":       {p + "registry", p + "tasks/inner", goRedis + "/auth"},
				p + "cmd/keyfuse": {"github.com/spf13/cobra", p + "engine"},
			},
			nil,
		},
		"a room that is not allowed": {
			map[string][]string{p + "client": {p + "registry"}},
			[]string{"client may import only the standard library, internal/wire, " + goRedis + ": " + p + "client → " + p + "registry"},
		},
		"a module, in a package below the room": {
			map[string][]string{p + "registry/inner": {goRedis}},
			[]string{"registry may import only the standard library: " + p + "registry/inner → " + goRedis},
		},
		"a name that only begins like an allowed one": {
			map[string][]string{p + "engine": {p + "registry2"}},
			[]string{"engine may import only the standard library, internal/wire, registry, " + goRedis + ": " + p + "engine → " + p + "registry2"},
		},
		"an owned module": {
			map[string][]string{p + "other": {"gopkg.in/yaml.v3"}},
			[]string{"gopkg.in/yaml.v3 is imported only by internal/config: " + p + "other → gopkg.in/yaml.v3"},
		},
		"heavy, by way of an allowed module": {
			map[string][]string{p + "internal/wire": {goRedis}, goRedis: {goRedis + "/inner"}, goRedis + "/inner": {"testing"}},
			[]string{"internal/wire must not reach testing: " + p + "internal/wire → " + goRedis + " → " + goRedis + "/inner → testing"},
		},
		"a test helper, directly": {
			map[string][]string{p + "bench": {p + "internal/redistest"}},
			[]string{
				"what users build must not reach internal/redistest: " + p + "bench → " + p + "internal/redistest",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := broken(made(test.imports)); !slices.Equal(got, test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// made is a graph of these imports, in which every path is a package.
func made(imports map[string][]string) graph {
	g := make(graph)
	for from, all := range imports {
		for _, path := range append(all, from) {
			g[path] = pkg{ImportPath: path, Imports: imports[path], Standard: !strings.ContainsAny(path, "./")}
		}
	}
	return g
}

func TestEveryRoomHasAPackage(t *testing.T) {
	g := load(t)
	for _, room := range rooms {
		if len(g.own(room)) == 0 {
			t.Errorf("no package in %s: if it moved, move its rules too", room)
		}
	}
}
