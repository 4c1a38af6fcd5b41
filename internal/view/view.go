// Package view has the JSON forms of jobs, tasks, nodes and thresholds: what
// `keyfuse -o json` prints and the HTTP API answers, and the jobs that both read.
//
// It promises that field names stay, and may only be added to; that times are RFC
// 3339 in UTC with milliseconds; that empty fields are left out; and that ids and
// payloads that are no UTF-8 come in base64, under the name with _base64 behind it. The
// words in which both the command line and the dashboard show them are here too.
package view

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Stamp is a time in JSON; empty for the zero time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// TextOrBase64 is a text as it is if it is UTF-8, else in base64.
func TextOrBase64(s string) (text, encoded string) {
	if utf8.ValidString(s) {
		return s, ""
	}
	return "", base64.StdEncoding.EncodeToString([]byte(s))
}

// DecodeBase64 is TextOrBase64 undone; what names it in an error.
func DecodeBase64(s, what string) (string, error) {
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return "", fmt.Errorf("%s is no base64: %q", what, s)
	}
	return string(decoded), nil
}
