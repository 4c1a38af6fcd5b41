package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// parseYAML returns the documents in data, of which an empty file has none,
// and how many lines the parser had to see for that.
func parseYAML(data []byte) (docs []*yaml.Node, seen int, err error) {
	lines := &lineReader{rest: data}
	for dec := yaml.NewDecoder(lines); ; {
		doc := new(yaml.Node)
		switch err := dec.Decode(doc); {
		case errors.Is(err, io.EOF):
			return docs, lines.seen, nil
		case err != nil:
			return nil, lines.seen, err
		}
		docs = append(docs, doc)
	}
}

// lineReader reads one line a call, and counts them.
type lineReader struct {
	rest []byte
	seen int
}

func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	end := bytes.IndexByte(r.rest, '\n') + 1
	if end == 0 {
		end = len(r.rest)
	}
	n := copy(p, r.rest[:end])
	r.rest = r.rest[n:]
	if n == end {
		r.seen++
	}
	return n, nil
}

// syntax reports text that is not YAML, of which the parser saw so many lines.
func (d *decoder) syntax(data []byte, seen int, err error) {
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	var line int
	if _, scanErr := fmt.Sscanf(problem, "line %d:", &line); scanErr == nil {
		_, problem, _ = strings.Cut(problem, ": ")
	}
	if strings.HasPrefix(problem, "unknown anchor") { // it repeats what may be a secret that lacks its quotes
		problem = "alias of an unknown anchor"
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	line = locate(lines[:min(max(seen, 1), len(lines))], line)
	if bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("\t")) {
		d.fail(line, "", "a tab indents this line: indent with spaces")
		return
	}
	d.fail(line, "", "is not YAML from here on (%s): look at the indentation, and at values that need quotes", problem)
}

// locate finds the line that the parser failed on, at the latest the last of
// lines. The parser itself names one too, but for many errors not the right
// one, or none: the line that counts is the first behind the longest beginning
// that is YAML. Where that is far from the end, the parser's own has to do.
func locate(lines [][]byte, named int) int {
	const far = 50
	for n := len(lines); n > max(0, len(lines)-far); n-- {
		if _, _, err := parseYAML(bytes.Join(lines[:n-1], nil)); err == nil {
			return n
		}
	}
	return min(max(named, 1), len(lines))
}
