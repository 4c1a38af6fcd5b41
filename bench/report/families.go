package report

import (
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// A family is the forms of one way that a target speaks of together: all whose names
// begin with its prefix.
type family struct {
	prefix, label string
	only          bool // the one of just that name
	// named are the forms that there must be before one of them is called the best.
	named []string
}

// The families that targets speak of. A prefix that no way has makes each target that
// needs it "not measured", and says so.
var (
	keyfuse = family{prefix: "keyfuse", label: "Keyfuse"}
	asynq   = family{prefix: "asynq", label: "asynq", named: []string{"asynq", "asynq-fast"}}
	// The targets were set by what people do, a GETDEL for each event. bare events-fast is
	// shown beside it.
	events  = family{prefix: "bare events", only: true, label: "bare events"}
	polling = family{prefix: "postgres", label: "database polling"}
	heap    = family{prefix: "heap", label: "the in-process heap"}
	scripts = family{prefix: "scripts", label: "the bare scripts"}
	sets    = family{prefix: "plain SETs", label: "plain SETs"}
)

// unknown is the store of a way that the results name no store of.
const unknown = "unknown"

func (f family) has(w result.Way) bool {
	if f.only {
		return w.Name == f.prefix
	}
	return strings.HasPrefix(w.Name, f.prefix) && !daemon(w)
}

// daemon says that it is Keyfuse's daemon, which is shown and judged nowhere: it
// schedules by the library's code, and would give Keyfuse two draws.
func daemon(w result.Way) bool { return w.Name == "keyfuse-daemon" }

// ours says that it is Keyfuse in any form.
func ours(w result.Way) bool { return keyfuse.has(w) || daemon(w) }

// floor says that it is no way to run delayed tasks, but what one is measured against.
func floor(w result.Way) bool { return scripts.has(w) || sets.has(w) }

// outlives says that a way's jobs outlive the process that schedules or runs them.
func outlives(w result.Way) bool { return w.Store != "" && w.Store != unknown }

// forms are the names of a family's ways, those that took part and those that ought to.
func (m *measured) forms(f family) []string {
	forms := slices.Clone(f.named)
	for _, w := range m.ways {
		if f.has(w) && !slices.Contains(forms, w.Name) {
			forms = append(forms, w.Name)
		}
	}
	return forms
}

// form is the figure of one form of a family.
type form struct {
	name string
	cell
	lacking []string // forms of the family without the figure: one of them may be better
}

// best is the form of a family with the best median; ok is false if no form has one. Its
// rounds are those of the form with the fewest, since it was compared with all.
func (m *measured) best(f family, figure string, size int) (best form, ok bool) {
	rounds := 0
	for _, name := range m.forms(f) {
		c := m.at(name, figure, size)
		if !c.known() {
			best.lacking = append(best.lacking, name)
			continue
		}
		if !ok || m.better(figure, c.median, best.median) < 0 {
			best.name, best.cell = name, c
		}
		if !ok || c.rounds < rounds {
			rounds = c.rounds
		}
		ok = true
	}
	best.rounds = rounds
	return best, ok
}

// tried are the sizes at which a family has any of the figures, or says why it has none.
func (m *measured) tried(f family, figures ...string) []int {
	var sizes []int
	for k := range m.cells {
		if slices.Contains(figures, k.figure) && slices.Contains(m.forms(f), k.way) {
			sizes = append(sizes, k.size)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}
