package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyfuse-io/keyfuse/bench/measure"
	"github.com/keyfuse-io/keyfuse/bench/way"
)

// runFlags are those of bench run.
type runFlags struct {
	figures, ways []string
	rounds        int
	roundsOf      map[string]int
	size, out     string
	resume, plan  bool

	chosen []string // the names of those that ways asks for
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	var what strings.Builder
	for _, k := range measure.All() {
		fmt.Fprintf(&what, "  %-10s %d × %s\n", k.Name, k.Rounds, k.What)
	}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure, and keep the results in a file",
		Long: `Measure, and keep the results in a file: what was measured before stays there, unless
the same is measured again. The figures, with how many rounds they have:

` + what.String() + `
Ways are named in full, or several by how their names begin: bench ways lists them. The
growth is that of Keyfuse only, unless ways are named.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.compare(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.figures, "figures", nil, "which, by their names (default all)")
	flags.StringSliceVar(&f.ways, "ways", nil, "which, by their names or how these begin (default all)")
	flags.IntVar(&f.rounds, "rounds", 0, "rounds of every figure (default as above)")
	flags.StringToIntVar(&f.roundsOf, "rounds-of", nil, "rounds of some: lateness=3,big-burst=2")
	flags.StringVar(&f.size, "size", "full", "full, or smoke: a minute, on Redis only, that shows that all of it works")
	flags.StringVar(&f.out, "out", "results.json", "the file of the results")
	flags.BoolVar(&f.resume, "resume", false, "leave out what is in the file already")
	flags.BoolVar(&f.plan, "plan", false, "only say how long it will take")
	return cmd
}

// kinds are the kinds of measurements that are asked for, with their rounds.
func (f runFlags) kinds() ([]measure.Kind, error) {
	var all []measure.Kind
	var names []string
	for _, k := range measure.All() {
		names = append(names, k.Name)
		if f.hasKind(k) {
			all = append(all, f.adapt(k))
		}
	}
	for _, name := range slices.Concat(f.figures, slices.Collect(maps.Keys(f.roundsOf))) {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("there is no figure %q: want some of %s", name, strings.Join(names, ", "))
		}
	}
	return all, nil
}

func (f runFlags) hasKind(k measure.Kind) bool {
	if len(f.figures) > 0 {
		return slices.Contains(f.figures, k.Name)
	}
	return f.size == "full" || !k.Larger
}

func (f runFlags) adapt(k measure.Kind) measure.Kind {
	if f.size != "full" {
		k.Rounds, k.Together, k.Guess, k.Limit = 1, true, smokeGuess, smokeLimit
	}
	if f.rounds > 0 {
		k.Rounds = f.rounds
	}
	if n, ok := f.roundsOf[k.Name]; ok {
		k.Rounds = n
	}
	return k
}

// wants says whether a way takes part in a kind of measurement.
func (f runFlags) wants(k measure.Kind, name string, needs []string) bool {
	if len(f.ways) > 0 {
		return slices.Contains(f.chosen, name)
	}
	onRedis := slices.Equal(needs, []string{"redis"})
	return (k.Only == "" || k.Only == name) && (f.size == "full" || onRedis)
}

// choose finds the ways that are asked for.
func (f *runFlags) choose(names []string) error {
	for _, begin := range f.ways {
		some := []string{begin}
		if !slices.Contains(names, begin) {
			some = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, begin) })
		}
		if len(some) == 0 {
			return fmt.Errorf("there is no way that begins with %q: want some of %s", begin, strings.Join(names, ", "))
		}
		f.chosen = append(f.chosen, some...)
	}
	return nil
}

func (a *app) names() []string {
	var names []string
	for _, w := range a.ways {
		names = append(names, w.Name)
	}
	for _, c := range a.countings {
		names = append(names, c.Name)
	}
	return names
}

func (a *app) compare(ctx context.Context, f runFlags) error {
	kinds, err := f.kinds()
	if err != nil {
		return err
	}
	if _, err := measure.Named(f.size); err != nil {
		return err
	}
	if err := f.choose(a.names()); err != nil {
		return err
	}
	results, err := load(f.out)
	if err != nil {
		return err
	}
	if len(results.Runs) > 0 && results.Size != f.size {
		return fmt.Errorf("%s has results of the size %q, which %q can't be beside: name another file with --out", f.out, results.Size, f.size)
	}
	results.Size = f.size
	c := &comparison{app: a, size: f.size, file: f.out, results: results}
	c.batches = plan(kinds, func(k measure.Kind) []string { return a.taking(k, f) })
	if len(c.batches) == 0 {
		return errors.New("none of these ways takes part in any of these figures: bench ways and bench run --help list both")
	}
	if f.resume {
		c.batches = left(c.batches, results.Runs)
	}
	if f.plan {
		c.printPlan()
		return nil
	}
	return c.run(ctx)
}

// taking are the names of the ways that take part in a kind of measurement. A way that
// can't never does, even if it is asked for by name.
func (a *app) taking(k measure.Kind, f runFlags) []string {
	var names []string
	add := func(name string, needs []string) {
		if f.wants(k, name, needs) {
			names = append(names, name)
		}
	}
	if k.Counting {
		for _, c := range a.countings {
			add(c.Name, c.Needs)
		}
		return names
	}
	for _, w := range a.ways {
		if k.Schedules || !w.Floor {
			add(w.Name, w.Needs)
		}
	}
	return names
}

// find is the way, or the way of counting, with a name.
func (a *app) find(k measure.Kind, name string) (w way.Way, c way.Counting, err error) {
	if k.Counting {
		if i := slices.IndexFunc(a.countings, func(c way.Counting) bool { return c.Name == name }); i >= 0 {
			return w, a.countings[i], nil
		}
	} else if i := slices.IndexFunc(a.ways, func(w way.Way) bool { return w.Name == name }); i >= 0 {
		return a.ways[i], c, nil
	}
	return w, c, fmt.Errorf("there is no way %q", name)
}
