package config

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// value is one place in the file: what stands there, and how to say where.
type value struct {
	d    *decoder
	node *yaml.Node
	line int    // of its key, where it has one
	path string // as in tasks.cancel-order
	key  string // the last step of path, unquoted
}

func (v value) fail(format string, args ...any) { v.d.fail(v.line, v.path, format, args...) }

var kindNames = map[yaml.Kind]string{
	yaml.MappingNode:  "a section",
	yaml.SequenceNode: "a list",
	yaml.ScalarNode:   "a single value",
}

var kindForms = map[yaml.Kind]string{
	yaml.MappingNode:  "a section of key: value",
	yaml.SequenceNode: "a list like [a, b]",
	yaml.ScalarNode:   "a single value",
}

// is reports whether the value is of that kind, and complains if not.
func (v value) is(kind yaml.Kind) bool {
	switch {
	case v.node.Kind == yaml.AliasNode:
		v.fail("YAML aliases (*name) are not supported: write the value out, or quote it if it is text")
	case v.node.Style&yaml.TaggedStyle != 0:
		v.fail("YAML tags (!name) are not supported: remove it, or quote the value if it is text")
	case v.node.Kind != kind:
		v.fail("want %s here, not %s", kindForms[kind], kindNames[v.node.Kind])
	default:
		return true
	}
	return false
}

// empty reports whether nothing is written here.
func (v value) empty() bool {
	return v.node.Kind == yaml.ScalarNode && v.node.Style == 0 && v.node.ShortTag() == "!!null"
}

// entries returns what a section holds, in its order, without keys that are
// no text or stand there twice, which it reports. An empty section is one
// without entries.
func (v value) entries() []value {
	if v.empty() || !v.is(yaml.MappingNode) {
		return nil
	}
	var entries []value
	first := map[string]int{}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key := v.node.Content[i]
		entry := value{d: v.d, node: v.node.Content[i+1], line: key.Line, path: join(v.path, key.Value), key: key.Value}
		line, twice := first[key.Value]
		switch {
		case key.ShortTag() == "!!merge":
			v.d.fail(key.Line, v.path, "YAML merge keys (<<) are not supported: write the keys out")
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			v.d.fail(key.Line, v.path, "a key here is not text: put it in quotes")
		case twice:
			entry.fail("stands here twice, first on line %d: remove one", line)
		default:
			first[key.Value] = key.Line
			entries = append(entries, entry)
		}
	}
	return entries
}

// items returns the elements of a list. An empty one has none.
func (v value) items() []value {
	if v.empty() || !v.is(yaml.SequenceNode) {
		return nil
	}
	items := make([]value, len(v.node.Content))
	for i, node := range v.node.Content {
		items[i] = value{d: v.d, node: node, line: node.Line, path: fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return items
}

// join adds a key to a path, quoted if it could be mistaken for anything else.
func join(path, key string) string {
	plain := key != "" && len(key) <= maxQuoted && strings.Trim(key, pathChars) == ""
	if !plain {
		key = quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

const pathChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/-"

// text is the text of a single value, with the environment put in.
type text struct {
	s      string
	secret bool // some of it came from the environment
}

// String shows the text in an error.
func (t text) String() string {
	if t.secret {
		return "the value from the environment"
	}
	return quote(t.s)
}

// scalar returns the text of a single value, as it stands in the file except
// for the environment's.
func (v value) scalar() (text, bool) {
	switch {
	case v.empty():
		v.fail("is empty: give it a value, or remove the line")
		return text{}, false
	case !v.is(yaml.ScalarNode):
		return text{}, false
	case v.node.ShortTag() != "!!str":
		return text{s: v.node.Value}, true
	}
	return v.expand(v.node.Value)
}
