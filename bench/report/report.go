// Package report writes what a comparison measured as a page and a chart for people.
//
// Every sentence with a figure in it is made from the results, so that none can
// contradict them; only remarks on how a way works tell of trials, and say so. What was
// not measured is called that: it is never a zero, never left out of a sum, and never a
// target that was met. Medians are of the rounds; the targets are judged by unrounded
// medians of one and the same results, and what has fewer than three rounds is counted
// apart.
package report

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

//go:embed comparison.md.tmpl chart.svg.tmpl
var templates embed.FS

// Write writes comparison.md and comparison.svg into the folder dir, which must exist.
// It refuses figures that result.Figures does not know, since it would not show them.
func Write(results result.Results, dir string) error {
	m, err := gather(results)
	if err != nil {
		return err
	}
	var page, chart bytes.Buffer
	if err := writePage(&page, results, m); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	if err := writeChart(&chart, m); err != nil {
		return fmt.Errorf("drawing the chart: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "comparison.md"), page.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "comparison.svg"), chart.Bytes(), 0o644)
}

// section is a heading and what is below it.
type section struct{ Title, Text string }

func writePage(page *bytes.Buffer, results result.Results, m *measured) error {
	funcs := template.FuncMap{"md": escape, "versions": versions}
	t, err := template.New("").Funcs(funcs).ParseFS(templates, "comparison.md.tmpl")
	if err != nil {
		return err
	}
	from, to := span(results)
	commit, moreCommits := commits(results.Runs)
	kernel, moreKernels := kernels(results.Runs)
	return t.ExecuteTemplate(page, "comparison.md.tmpl", map[string]any{
		"Results": results,
		"Size":    cmp.Or(results.Size, notNoted),
		"From":    from,
		"To":      to,
		"Kernel":  cmp.Or(kernel, results.Machine.Kernel),
		"Kernels": moreKernels,
		"Commit":  commit,
		"Commits": moreCommits,
		"Failed":  failed(results.Runs),
		"Summary": summary(m),
		"Targets": targetsTable(m),
		"Growth":  growthTable(m),
		"Kinds":   kindSections(m),
	})
}
