package wire

import (
	"maps"
	"slices"
	"strings"
)

// Matcher knows which keys are counters of some definitions.
type Matcher struct {
	own      map[string]struct{}
	patterns []string
}

// NewMatcher makes a matcher of the ids and patterns of definitions.
func NewMatcher(ids []string) *Matcher {
	m := &Matcher{own: make(map[string]struct{})}
	for _, id := range ids {
		if IsPattern(id) {
			m.patterns = append(m.patterns, id)
		} else {
			m.own[id] = struct{}{}
		}
	}
	return m
}

// Empty says whether no key is a counter.
func (m *Matcher) Empty() bool { return len(m.own)+len(m.patterns) == 0 }

// IDs are the counters that have a definition of their own.
func (m *Matcher) IDs() []string { return slices.Collect(maps.Keys(m.own)) }

// Patterns are those that give each key that matches a counter of its own.
func (m *Matcher) Patterns() []string { return m.patterns }

// Match says whether an id is a counter.
func (m *Matcher) Match(id string) bool {
	if len(id) > MaxID || IsInternal(id) {
		return false
	}
	if _, ok := m.own[id]; ok {
		return true
	}
	return slices.ContainsFunc(m.patterns, func(pattern string) bool {
		head, tail, _ := strings.Cut(pattern, "*")
		return len(id) >= len(head)+len(tail) && strings.HasPrefix(id, head) && strings.HasSuffix(id, tail)
	})
}

// Glob is a SCAN pattern for what a pattern matches.
func (n Names) Glob(pattern string) string {
	head, tail, _ := strings.Cut(pattern, "*")
	return n.tag + globEscape(head) + "*" + globEscape(tail)
}
