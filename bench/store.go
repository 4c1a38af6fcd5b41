package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// load reads results; none if there is no such file.
func load(file string) (*result.Results, error) {
	results := &result.Results{}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return results, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, results); err != nil {
		return nil, fmt.Errorf("%s has no results: %w; name another file with --out", file, err)
	}
	return results, nil
}

// save writes results so that at any time either the old or the new ones are there.
func save(file string, results *result.Results) error {
	text, err := json.MarshalIndent(results, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// keep adds a run and its values, in the place of the same one before, as result.Run says.
func keep(results *result.Results, run result.Run, values []result.Value) {
	of := func(v result.Value) bool { return v.Kind == run.Figure && v.Way == run.Way && v.Round == run.Round }
	same := func(old result.Run) bool {
		return old.Figure == run.Figure && old.Way == run.Way && old.Round == run.Round
	}
	before := slices.IndexFunc(results.Runs, same)
	if before >= 0 && run.Failed != "" && len(values) == 0 && slices.ContainsFunc(results.Values, of) {
		results.Runs[before].Failed = fmt.Sprintf("made again at %s: %s", run.At, run.Failed)
		return
	}
	results.Runs = append(slices.DeleteFunc(results.Runs, same), run)
	results.Values = slices.DeleteFunc(results.Values, of)
	for _, v := range values {
		v.Kind = run.Figure
		results.Values = append(results.Values, v)
	}
}

// described are the ways that take part or have values already, in the order of the
// tables.
func (a *app) described(batches []batch, values []result.Value) []result.Way {
	takesPart := make(map[string]bool)
	for _, b := range batches {
		for _, u := range b {
			takesPart[u.way] = true
		}
	}
	for _, v := range values {
		takesPart[v.Way] = true
	}
	var all []result.Way
	add := func(name, what string, needs []string) {
		if takesPart[name] {
			takesPart[name] = false // one that also counts is described once
			all = append(all, result.Way{Name: name, What: what, Store: strings.Join(needs, "+")})
		}
	}
	for _, w := range a.ways {
		add(w.Name, w.What, w.Needs)
	}
	for _, c := range a.countings {
		add(c.Name, c.What, c.Needs)
	}
	return all
}
