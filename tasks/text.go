package tasks

import (
	"strconv"
	"unicode/utf8"
)

// shorten returns at most limit bytes of s from its beginning, without cutting
// a character of valid UTF-8 in two.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if utf8.ValidString(s) {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
	}
	return s[:limit]
}

// quoteHead quotes the first limit bytes of s, which may be any bytes, as valid
// UTF-8 on one line; an ellipsis says that more followed.
func quoteHead(s string, limit int) string {
	head := shorten(s, limit)
	if len(head) < len(s) {
		return strconv.Quote(head) + "…"
	}
	return strconv.Quote(head)
}

// quoteTail is quoteHead for the last limit bytes.
func quoteTail(s string, limit int) string {
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	start := len(s) - limit
	if utf8.ValidString(s) {
		for start < len(s) && !utf8.RuneStart(s[start]) {
			start++
		}
	}
	return "…" + strconv.Quote(s[start:])
}

// clipped is an error whose text may hold much of what another side sent.
type clipped struct{ error }

const clippedText = 512

func (e clipped) Error() string {
	text := e.error.Error()
	if len(text) <= clippedText {
		return text
	}
	return shorten(text, clippedText) + "…"
}

func (e clipped) Unwrap() error { return e.error }
