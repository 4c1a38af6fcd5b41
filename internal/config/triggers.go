package config

import (
	"fmt"
	"time"
)

// triggers reads the list of triggers. It needs all else to be read.
func (d *decoder) triggers(v value) {
	first, closest := map[string]int{}, patterns{}
	for _, item := range v.items() {
		t := d.trigger(item)
		if line, twice := first[t.ID]; twice && t.ID != "" {
			item.fail("has the id of the trigger on line %d: change one of them", line)
			continue
		}
		if line, rival := closest.add(t, item.line); rival {
			item.fail("matches some ids as closely as the trigger on line %d: change the text before or after the * in one of them", line)
		}
		first[t.ID] = item.line
		d.cfg.Triggers = append(d.cfg.Triggers, t)
	}
}

func (d *decoder) trigger(v value) Trigger {
	var t Trigger
	var at value
	var payload string
	zone := time.Local
	given, clean := v.section(fields{
		"id":        str(&t.ID, idBelow(d.cfg.Redis.IDPrefix)),
		"task":      d.taskName(&t.Task),
		"in":        duration(&t.In, 0),
		"at":        hold(&at),
		"timezone":  parsed(&zone, "a time zone like Europe/Berlin", parseZone),
		"payload":   str(&payload, d.checkPayload),
		"threshold": func(v value) { t.Threshold = v.threshold() },
		"cron":      later("recurring triggers are"),
		"every":     later("recurring triggers are"),
	})
	v.needs(given, "id", "task")
	if clean {
		v.checkWhen(given)
	}
	if err := checkPattern(t.ID); err != nil && t.Threshold != nil {
		given["id"].fail("%s", err)
		t.ID = ""
	}
	if at.node != nil {
		parsed(&t.At, "a time like 2026-12-01T09:00:00Z", func(s string) (time.Time, error) { return ParseTime(s, zone) })(at)
	}
	t.Payload = []byte(payload)
	return t
}

// checkWhen looks at whether a trigger says when it is due, once.
func (v value) checkWhen(given map[string]value) {
	var says []string
	for _, key := range []string{"in", "at", "threshold", "cron", "every"} {
		if _, ok := given[key]; ok {
			says = append(says, key)
		}
	}
	if len(says) > 1 {
		v.fail("has both %s and %s: keep one", says[0], says[1])
	}
	if len(says) == 0 && len(given) > 0 {
		v.fail("does not say when: add in, at or threshold")
	}
	_, at := given["at"]
	if zone, ok := given["timezone"]; ok && !at {
		zone.fail("goes only with at: remove it")
	}
}

// taskName reads the name of one of the tasks.
func (d *decoder) taskName(to *string) field {
	return func(v value) {
		t, ok := v.scalar()
		if !ok {
			return
		}
		names := make([]string, len(d.cfg.Tasks))
		for i, task := range d.cfg.Tasks {
			names[i] = task.Name
			if task.Name == t.s {
				*to = t.s
				return
			}
		}
		if near := nearest(t.s, names); near != "" && !t.secret {
			v.fail("%s is not defined under tasks: did you mean %s?", t, near)
			return
		}
		v.fail("%s is not defined under tasks: define it there", t)
	}
}

func (d *decoder) checkPayload(s string) error {
	if limit := d.cfg.Engine.MaxPayload; int64(len(s)) > limit {
		return fmt.Errorf("has %d bytes, more than engine.max_payload (%d): shorten it", len(s), limit)
	}
	return nil
}

func parseZone(s string) (*time.Location, error) {
	zone, err := time.LoadLocation(s)
	if err != nil || s == "" {
		return nil, fmt.Errorf("%s is not a time zone that this machine knows: write one like Europe/Berlin", quote(s))
	}
	return zone, nil
}
