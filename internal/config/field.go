package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// field reads the value of one known key.
type field func(value)

// fields are the known keys of a section.
type fields map[string]field

// section reads a section of known keys. It returns the keys it met, and
// whether all of them are known; those that are not it reports.
func (v value) section(known fields) (given map[string]value, clean bool) {
	given, clean = map[string]value{}, true
	for _, entry := range v.entries() {
		given[entry.key] = entry
		read, ok := known[entry.key]
		if !ok {
			clean = false
			entry.fail("unknown key: %s", suggest(entry.key, sortedKeys(known)))
			continue
		}
		read(entry)
	}
	return given, clean
}

// needs complains of keys that a section must have and has not; what is no
// section has been complained of already.
func (v value) needs(given map[string]value, keys ...string) {
	if v.node.Kind != yaml.MappingNode && !v.empty() {
		return
	}
	for _, key := range keys {
		if _, ok := given[key]; !ok {
			v.fail("has no %s: add one", key)
		}
	}
}

// hold keeps a value to be read once others are known.
func hold(to *value) field { return func(v value) { *to = v } }

// later stands for what the file format has and this version has not.
func later(what string) field {
	return func(v value) { v.fail("%s not supported in this version yet: remove it", what) }
}

// str reads text. No error of a check may repeat it.
func str(to *string, check func(string) error) field {
	return func(v value) {
		t, ok := v.scalar()
		if !ok {
			return
		}
		if v.node.ShortTag() != "!!str" {
			v.fail("want text here: put the value in quotes")
			return
		}
		if err := check(t.s); err != nil {
			v.fail("%s", err)
			return
		}
		*to = t.s
	}
}

// strs reads a list of texts.
func strs(to *[]string, check func(string) error) field {
	return func(v value) {
		for _, item := range v.items() {
			var s string
			str(&s, check)(item)
			*to = append(*to, s)
		}
	}
}

// strMap reads a section whose keys are free and whose values are text.
func strMap(to *map[string]string, checkKey, checkValue func(string) error) field {
	return func(v value) {
		read := map[string]string{}
		for _, entry := range v.entries() {
			if err := checkKey(entry.key); err != nil {
				entry.fail("%s", err)
				continue
			}
			var s string
			str(&s, checkValue)(entry)
			read[entry.key] = s
		}
		*to = read
	}
}

// parsed reads a value that has a form; want names the form for when the value
// itself must not be shown.
func parsed[T any](to *T, want string, parse func(string) (T, error)) field {
	return func(v value) {
		t, ok := v.scalar()
		if !ok {
			return
		}
		got, err := parse(t.s)
		switch {
		case err == nil:
			*to = got
		case t.secret:
			v.fail("%s is not %s", t, want)
		default:
			v.fail("%s", err)
		}
	}
}

// oneOf reads one of a few words.
func oneOf[T ~string](to *T, words ...T) field {
	return func(v value) {
		t, ok := v.scalar()
		switch {
		case !ok:
		case !slices.Contains(words, T(t.s)):
			names := make([]string, len(words))
			for i, word := range words {
				names[i] = string(word)
			}
			v.fail("%s is not one of %s", t, strings.Join(names, ", "))
		default:
			*to = T(t.s)
		}
	}
}

// boolean reads true or false.
func boolean(to *bool) field {
	return parsed(to, "true or false", func(s string) (bool, error) {
		if s != "true" && s != "false" {
			return false, fmt.Errorf("%s is not true or false", quote(s))
		}
		return s == "true", nil
	})
}

// duration reads a duration of at least lowest.
func duration(to *time.Duration, lowest time.Duration) field {
	return parsed(to, "a duration of "+FormatDuration(lowest)+" or more, like 90s or 30m", func(s string) (time.Duration, error) {
		return parseDurationFrom(s, lowest)
	})
}
