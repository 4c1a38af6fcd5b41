package web

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// TestOpenAPIIsWhatIsThere holds the description against the routes: each is in it, and
// nothing else is; each path parameter is named; each that honours an idempotency key
// says so; and every reference leads somewhere.
func TestOpenAPIIsWhatIsThere(t *testing.T) {
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]yaml.Node
		Components map[string]map[string]yaml.Node
	}
	if err := yaml.Unmarshal(openAPIText, &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") {
		t.Errorf("it is of version %q", doc.OpenAPI)
	}
	described := map[string]string{} // route → its text
	for path, item := range doc.Paths {
		shared := textOf(t, item["parameters"])
		for method, node := range item {
			if method != "parameters" {
				described[strings.ToUpper(method)+" "+path] = shared + textOf(t, node)
			}
		}
	}
	for _, r := range (&Server{}).routes() {
		path := r.pattern[strings.Index(r.pattern, " ")+1:]
		if !strings.HasPrefix(path, "/v1/") && !slices.Contains([]string{"/livez", "/readyz", "/metrics"}, path) {
			continue // the dashboard's
		}
		text, ok := described[r.pattern]
		if !ok {
			t.Errorf("%s is not described", r.pattern)
			continue
		}
		delete(described, r.pattern)
		for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
			if !strings.Contains(text, map[string]string{"id": "parameters/ID", "task": "parameters/TaskName"}[name[1]]) {
				t.Errorf("%s: %s is not described", r.pattern, name[1])
			}
		}
		takesKey := strings.Contains(text, "parameters/IdempotencyKey")
		if wants := r.once || strings.HasSuffix(path, "/hits"); takesKey != wants {
			t.Errorf("%s: it is described to take an idempotency key: %t, want %t", r.pattern, takesKey, wants)
		}
		if free := strings.Contains(text, "security: []"); free != (r.access == forAll) {
			t.Errorf("%s: it is described to need no token: %t", r.pattern, free)
		}
	}
	for route := range described {
		t.Errorf("%s is described, and there is no such route", route)
	}
	for _, ref := range regexp.MustCompile(`#/components/(\w+)/(\w+)`).FindAllStringSubmatch(string(openAPIText), -1) {
		if _, ok := doc.Components[ref[1]][ref[2]]; !ok {
			t.Errorf("%s leads nowhere", ref[0])
		}
	}
}

func textOf(t *testing.T, node yaml.Node) string {
	t.Helper()
	if node.IsZero() {
		return ""
	}
	text, err := yaml.Marshal(&node)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
