package embedded_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/internal/embedded"
)

func FuzzRequestsComeThroughUnchangedOrNotAtAll(f *testing.F) {
	for _, seed := range []string{"*1\r\n$4\r\nPING\r\n", "*0\r\n*2\r\n$1\r\na\r\n$0\r\n\r\n", "*-1\r\n", "*1\r\n$4\r\nPI", "PING\r\n", "*1\r\n$+4\r\nPING\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		requests, err := embedded.ReadRequests(data)
		if err == nil {
			t.Fatal("no end")
		}
		again, err := embedded.ReadRequests([]byte(strings.Join(requests, "")))
		if !errors.Is(err, io.EOF) || strings.Join(again, "") != strings.Join(requests, "") {
			t.Errorf("%q became %q, %v", requests, again, err)
		}
		for _, request := range requests {
			if strings.HasPrefix(request, "*0") || strings.HasPrefix(request, "*-") {
				t.Errorf("empty request %q", request)
			}
		}
	})
}

func FuzzGlobMatchesTheEscapedText(f *testing.F) {
	f.Add("a*b", "a**b")
	f.Add("[^a-c]?", `\x`)
	f.Add("[", "[")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		embedded.Glob(pattern, text) // ends, without a panic
		var escaped bytes.Buffer
		for i := range len(text) {
			escaped.Write([]byte{'\\', text[i]})
		}
		if !embedded.Glob(escaped.String(), text) || !embedded.Glob("*"+escaped.String()+"*", "x"+text+"y") {
			t.Errorf("%q does not match %q", escaped.String(), text)
		}
		if embedded.Glob(escaped.String(), text+"x") {
			t.Errorf("%q matches more than %q", escaped.String(), text)
		}
	})
}
