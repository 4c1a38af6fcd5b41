package config

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/keyfuse-io/keyfuse/registry"
)

func (d *decoder) tasks(v value, defaults registry.Options) {
	for _, entry := range v.entries() {
		if err := registry.CheckName(entry.key); err != nil {
			entry.fail("is not a task name: want 1 to %d letters, digits and . _ : / - that begin with a letter or digit", registry.MaxName)
		}
		d.cfg.Tasks = append(d.cfg.Tasks, d.task(entry, defaults))
	}
}

// kindOrder is how errors list the kinds.
var kindOrder = []string{"http", "exec", "stream", "list", "publish", "log"}

// task reads one task, whose options begin as the defaults.
func (d *decoder) task(v value, defaults registry.Options) Task {
	t := Task{Name: v.key, Options: defaults, Line: v.line}
	known := limits(&t.Options)
	known["concurrency"] = whole(&t.Options.Concurrency, 0, 100_000)
	known["delivery"] = oneOf(&t.Options.Delivery, registry.AtLeastOnce, registry.AtMostOnce)
	maps.Copy(known, kinds(&t.Kind))

	before := len(v.d.errs)
	given, clean := v.section(known)
	has := slices.DeleteFunc(slices.Clone(kindOrder), func(kind string) bool {
		_, ok := given[kind]
		return !ok
	})
	switch {
	case len(has) > 1:
		v.fail("has %d kinds, %s: keep one", len(has), strings.Join(has, " and "))
	case len(has) == 0 && clean && (before == len(v.d.errs) || len(given) > 0):
		v.fail("does not say what to do: add one of %s", strings.Join(kindOrder, ", "))
	}
	return t
}

func kinds(to *Kind) fields {
	return fields{
		"http":    func(v value) { *to = httpTask(v) },
		"exec":    func(v value) { *to = execTask(v) },
		"stream":  func(v value) { *to = streamTask(v) },
		"list":    func(v value) { *to = listTask(v) },
		"publish": func(v value) { *to = publishTask(v) },
		"log":     func(v value) { *to = logTask(v) },
	}
}

func httpTask(v value) HTTPTask {
	t := HTTPTask{Method: "POST"}
	given, _ := v.section(fields{
		"url":     str(&t.URL, checkHTTPURL),
		"method":  oneOf(&t.Method, "POST", "PUT", "PATCH", "DELETE", "GET"),
		"secret":  str(&t.Secret, checkFilled),
		"headers": strMap(&t.Headers, headerNames(), checkHeaderValue),
	})
	v.needs(given, "url")
	return t
}

func execTask(v value) ExecTask {
	var t ExecTask
	given, _ := v.section(fields{
		"command": command(&t.Command),
		"dir":     str(&t.Dir, checkArgument),
		"env":     strMap(&t.Env, checkEnvName, checkArgument),
	})
	v.needs(given, "command")
	return t
}

func command(to *[]string) field {
	return func(v value) {
		before := len(v.d.errs)
		strs(to, checkArgument)(v)
		if len(v.d.errs) == before && (len(*to) == 0 || (*to)[0] == "") {
			v.fail("names no program: want a list of the program and its arguments")
		}
	}
}

func streamTask(v value) StreamTask {
	var t StreamTask
	given, _ := v.section(fields{"key": str(&t.Key, checkKey), "maxlen": whole(&t.MaxLen, 0, 1_000_000_000_000)})
	v.needs(given, "key")
	return t
}

func listTask(v value) ListTask {
	var t ListTask
	given, _ := v.section(fields{"key": str(&t.Key, checkKey)})
	v.needs(given, "key")
	return t
}

func publishTask(v value) PublishTask {
	var t PublishTask
	given, _ := v.section(fields{"channel": str(&t.Channel, checkFilled)})
	v.needs(given, "channel")
	return t
}

func logTask(v value) LogTask {
	var t LogTask
	v.section(fields{"level": parsed(&t.Level, levelNames, parseLevel)})
	return t
}

const levelNames = "one of debug, info, warn, error"

func parseLevel(s string) (slog.Level, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[s]
	if !ok {
		return 0, fmt.Errorf("%s is not %s", quote(s), levelNames)
	}
	return level, nil
}
