package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// everywhere makes a check of each server that holds jobs into one of all of them.
func (e *exam) everywhere(check func(*server, context.Context) Check) func(context.Context) Check {
	return func(ctx context.Context) Check {
		holders := slices.DeleteFunc(slices.Clone(e.servers), func(s *server) bool { return len(s.stores) == 0 })
		return merged(holders, onEach(holders, func(s *server) Check { return check(s, ctx) }))
	}
}

func rank(s Status) int { return slices.Index([]Status{OK, Warn, Fail}, s) }

func worst(checks []Check) Status {
	return slices.MaxFunc(checks, func(a, b Check) int { return cmp.Compare(rank(a.Status), rank(b.Status)) }).Status
}

// merged is what was found on some servers: the worst status. Servers are named
// unless all are alike; those that are well are left out if some are not.
func merged(servers []*server, checks []Check) Check {
	switch len(checks) {
	case 0:
		return fail("see the checks of redis and cluster", "no master that holds jobs answers")
	case 1:
		return checks[0]
	}
	status := worst(checks)
	var details, fixes notes
	for i, c := range checks {
		switch addr := servers[i].addr; {
		case c.extent > 0 && status == OK:
			furthest := slices.MaxFunc(checks, func(a, b Check) int { return cmp.Compare(a.extent, b.extent) })
			details.add(addr, furthest.Detail)
		case c.Status != OK || status == OK:
			details.add(addr, c.Detail)
			fixes.add(addr, c.Fix)
		}
	}
	return Check{
		Status: status,
		Detail: details.join("; ", len(checks), fmt.Sprintf("on all %d masters: ", len(checks))),
		Fix:    fixes.join("\n", len(checks), ""),
	}
}

// notes are texts, each with the servers that it is about.
type notes []note

type note struct {
	text  string
	addrs []string
}

func (n *notes) add(addr, text string) {
	if text == "" {
		return
	}
	i := slices.IndexFunc(*n, func(known note) bool { return known.text == text })
	if i < 0 {
		i = len(*n)
		*n = append(*n, note{text: text})
	}
	(*n)[i].addrs = append((*n)[i].addrs, addr)
}

// join puts before each text which servers it is about, or everywhere if it is about
// all of them.
func (n *notes) join(separator string, all int, everywhere string) string {
	var texts []string
	for _, note := range *n {
		where := "on " + some(note.addrs) + ": "
		if len(note.addrs) == all {
			where = everywhere
		}
		texts = append(texts, where+note.text)
	}
	return strings.Join(texts, separator)
}

// both is what several looks found, as one check: the worst status, and all details
// of that kind; if all are well, all of them.
func both(checks ...Check) Check {
	status := worst(checks)
	var details, fixes []string
	for _, c := range checks {
		if c.Status == OK && status != OK || c.Detail == "" {
			continue
		}
		details = append(details, c.Detail)
		if c.Fix != "" {
			fixes = append(fixes, c.Fix)
		}
	}
	return Check{Status: status, Detail: strings.Join(details, "; "), Fix: strings.Join(unique(fixes), "\n")}
}

// some joins the first of many.
func some(list []string) string {
	const most = 5
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}
