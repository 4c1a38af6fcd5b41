package embedded

// glob reports whether text matches a pattern of Redis: *, ?, [a-z], [^a] and
// \x for x itself, on bytes. It takes at most len(pattern)·len(text) steps.
func glob(pattern, text string) bool {
	star, mark := -1, 0 // the last * and where in text its match ends
	p, t := 0, 0
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star, mark = p, t
			p++
			continue
		}
		if width, ok := globOne(pattern[p:], text[t]); ok {
			p += width
			t++
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		p, t = star+1, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// globOne matches one byte with the first element of a pattern and returns
// the length of that element.
func globOne(pattern string, b byte) (width int, ok bool) {
	switch {
	case pattern == "":
		return 0, false
	case pattern[0] == '?':
		return 1, true
	case pattern[0] == '[':
		return globClass(pattern, b)
	case pattern[0] == '\\' && len(pattern) > 1:
		return 2, pattern[1] == b
	}
	return 1, pattern[0] == b
}

// globClass is globOne for a class such as [^a-c]. One without an end ends
// with the pattern.
func globClass(pattern string, b byte) (width int, ok bool) {
	i := 1
	negated := i < len(pattern) && pattern[i] == '^'
	if negated {
		i++
	}
	for i < len(pattern) && pattern[i] != ']' {
		from := pattern[i]
		switch {
		case from == '\\' && i+1 < len(pattern):
			from = pattern[i+1]
			ok = ok || from == b
			i += 2
		case i+2 < len(pattern) && pattern[i+1] == '-':
			to := pattern[i+2]
			ok = ok || (min(from, to) <= b && b <= max(from, to))
			i += 3
		default:
			ok = ok || from == b
			i++
		}
	}
	return min(i+1, len(pattern)), ok != negated
}
