package config

import "strings"

// expand puts the environment into s. It reports every variable that is not
// there, and then answers false.
func (v value) expand(s string) (text, bool) {
	var out strings.Builder
	expanded, ok := text{}, true
	for {
		before, rest, found := strings.Cut(s, "${")
		plain, escaped := strings.CutSuffix(before, "$")
		if found && escaped {
			out.WriteString(plain + "${")
			s = rest
			continue
		}
		out.WriteString(before)
		if !found {
			break
		}
		reference, after, closed := strings.Cut(rest, "}")
		if !closed {
			v.fail("${ has no } behind it: add one, or write $${ for a plain ${")
			return text{}, false
		}
		got, known := v.lookup(reference)
		out.WriteString(got.s)
		expanded.secret = expanded.secret || got.secret
		ok = ok && known
		s = after
	}
	expanded.s = out.String()
	return expanded, ok
}

// lookup reads what stands in ${}: NAME or NAME:-default.
func (v value) lookup(reference string) (text, bool) {
	name, fallback, optional := strings.Cut(reference, ":-")
	switch {
	case !isVariable(name):
		v.fail("%s is not a name for an environment variable: write ${NAME} or ${NAME:-default}, or $${ for a plain ${", quote(name))
		return text{}, false
	case strings.Contains(fallback, "${"):
		v.fail("the default of ${%s:-…} holds another ${: a default is plain text", name)
		return text{}, false
	}
	got, set := v.d.env(name)
	switch {
	case optional && got == "":
		return text{s: fallback}, true
	case !set:
		v.fail("the environment variable %s is not set: set it, or write ${%s:-default}", name, name)
		return text{}, false
	}
	return text{s: got, secret: got != ""}, true
}

func isVariable(name string) bool {
	return name != "" && len(name) <= maxQuoted && strings.Trim(name, variableChars) == "" && (name[0] < '0' || name[0] > '9')
}

const variableChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
