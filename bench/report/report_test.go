package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// example are results that nobody measured: made up, with round figures.
func example(t *testing.T) result.Results {
	t.Helper()
	file, err := os.ReadFile("testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	var results result.Results
	if err := json.Unmarshal(file, &results); err != nil {
		t.Fatal(err)
	}
	return results
}

// written is what Write makes of results.
func written(t *testing.T, results result.Results) (page, chart string) {
	t.Helper()
	dir := t.TempDir()
	if err := Write(results, dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		file, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(file)
	}
	return read("comparison.md"), read("comparison.svg")
}

// GOLDEN=write writes the files that the test compares with; look at their difference.
func TestGoldenFiles(t *testing.T) {
	page, chart := written(t, example(t))
	for name, got := range map[string]string{"comparison.md": page, "comparison.svg": chart} {
		file := filepath.Join("testdata", name)
		if os.Getenv("GOLDEN") == "write" {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not what %s has; GOLDEN=write writes it anew. It is now:\n%s", name, file, got)
		}
	}
}

func TestNothingMeasured(t *testing.T) {
	page, chart := written(t, result.Results{})
	for _, want := range []string{"Nothing that decides was measured.", "Must reach: 0 met, ", "19 not measured"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	parse(t, chart)
}

func TestAnUnknownFigureIsRefused(t *testing.T) {
	err := Write(result.Results{Values: []result.Value{{Way: "heap", Figure: "speed"}}}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), `"speed"`) {
		t.Errorf("got %v, want an error that names the figure", err)
	}
}

func TestEveryFigureIsInSomeTable(t *testing.T) {
	var shown []string
	for _, k := range kinds() {
		for _, c := range k.columns {
			shown = append(shown, c.figure)
		}
	}
	for _, f := range growths() {
		shown = append(shown, f.Name)
	}
	for _, f := range result.Figures() {
		if !slices.Contains(shown, f.Name) {
			t.Errorf("%s is in no table", f.Name)
		}
	}
	if len(shown) != len(result.Figures()) {
		t.Errorf("%d columns for %d figures", len(shown), len(result.Figures()))
	}
}

func TestAWholeNameSurvivesTheChart(t *testing.T) {
	results := example(t)
	_, chart := written(t, results)
	text := parse(t, chart)
	for _, name := range []string{`odd <b>|*way*"&`, "keyfuse-daemon"} {
		if !slices.Contains(text, name) {
			t.Errorf("no text of the chart is %q: %q", name, text)
		}
	}
	for _, outside := range []string{"href", "url(", "@import", "<script"} {
		if strings.Contains(chart, outside) {
			t.Errorf("the chart has %q", outside)
		}
	}
}

// parse is all text of an XML document.
func parse(t *testing.T, document string) []string {
	t.Helper()
	var text []string
	decoder := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return text
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if data, ok := token.(xml.CharData); ok {
			text = append(text, string(data))
		}
	}
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"postgres-100ms":       "postgres-100ms",
		"a|b":                  `a\|b`,
		"<i>&amp;":             "&lt;i&gt;&amp;amp;",
		"*a* _b_ `c` [d](e) ~": "\\*a\\* \\_b\\_ \\`c\\` \\[d\\](e) \\~",
		"two\nlines":           "two lines",
		`back\slash`:           `back\\slash`,
	} {
		if got := escape(text); got != want {
			t.Errorf("escape(%q) is %q, want %q", text, got, want)
		}
	}
}
