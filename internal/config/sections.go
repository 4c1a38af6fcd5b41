package config

import (
	"cmp"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

// none is how registry.Options says that something is switched off; there,
// zero means the default.
const none = -1

// root reads the whole file. Tasks need the defaults and triggers need all
// else, wherever in the file these stand.
func (d *decoder) root(v value) {
	var tasks, triggers value
	var defaults registry.Options
	known := fields{
		"redis":    d.redis,
		"engine":   d.engine,
		"http":     d.http,
		"defaults": func(v value) { v.section(limits(&defaults)) },
		"tasks":    hold(&tasks),
		"triggers": hold(&triggers),
	}
	if d.connectionOnly {
		for _, key := range []string{"http", "defaults", "tasks", "triggers"} {
			known[key] = func(value) {}
		}
	}
	v.section(known)
	if tasks.node != nil {
		d.tasks(tasks, defaults)
	}
	if triggers.node != nil {
		d.triggers(triggers)
	}
}

func (d *decoder) engine(v value) {
	e := &d.cfg.Engine
	v.section(fields{
		"concurrency":    whole(&e.Concurrency, 1, 100_000),
		"lease":          duration(&e.Lease, time.Second),
		"shutdown_grace": duration(&e.ShutdownGrace, 0),
		"max_payload":    size(&e.MaxPayload, maxSize, "512MiB"),
	})
}

// limits are the options that the tasks have defaults for.
func limits(o *registry.Options) fields {
	return fields{
		"timeout": orNone(&o.Timeout, func(to *time.Duration) field { return duration(to, 0) }),
		"retries": func(v value) { retries(v, &o.Retries) },
	}
}

// retries reads the section of that name into r, which holds what goes for
// everything that the section leaves out.
func retries(v value, r *registry.Retries) {
	before := len(v.d.errs)
	v.section(fields{
		"max":       orNone(&r.Max, func(to *int) field { return whole(to, 0, 1_000_000) }),
		"initial":   duration(&r.Initial, time.Millisecond),
		"max_delay": duration(&r.MaxDelay, time.Millisecond),
		"jitter":    orNone(&r.Jitter, share),
	})
	initial := cmp.Or(r.Initial, registry.DefaultRetryInitial)
	longest := cmp.Or(r.MaxDelay, max(registry.DefaultRetryMax, initial))
	if initial > longest && len(v.d.errs) == before {
		v.fail("initial (%s) is longer than max_delay (%s): change one of them", FormatDuration(initial), FormatDuration(longest))
	}
}

// orNone reads a setting whose zero means none, which registry.Options wants
// said otherwise.
func orNone[T int | float64 | time.Duration](to *T, read func(*T) field) field {
	return func(v value) {
		read(to)(v)
		if *to == 0 {
			*to = none
		}
	}
}
