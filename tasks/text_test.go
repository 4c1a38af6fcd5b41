package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQuotingCutsBetweenCharactersAndSaysSo(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{quoteHead("ab", 2), `"ab"`},
		{quoteHead("ééé", 3), `"é"…`},
		{quoteHead("\xff\x80\x80\x80\x80", 2), `"\xff\x80"…`},
		{quoteHead("a\nb", 9), `"a\nb"`},
		{quoteTail("ab", 2), `"ab"`},
		{quoteTail("ééé", 3), `…"é"`},
		{quoteTail("\xff\x80\x80", 1), `…"\x80"`},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestClippedErrorIsBoundedAndKeepsItsCause(t *testing.T) {
	err := clipped{fmt.Errorf("%s: %w", strings.Repeat("x", 5000), io.ErrUnexpectedEOF)}
	if n := len(err.Error()); n > clippedText+len("…") {
		t.Errorf("the error has %d bytes", n)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
}

func FuzzTailKeepsTheEndInBoundedMemory(f *testing.F) {
	f.Add([]byte("hello, world"), 5, 3)
	f.Add([]byte("ab"), 1, 1)
	f.Fuzz(func(t *testing.T, data []byte, limit, chunk int) {
		if limit < 1 || limit > 1<<16 || chunk < 1 {
			return
		}
		kept := &tail{limit: limit}
		for rest := data; len(rest) > 0; {
			n := min(chunk, len(rest))
			if wrote, err := kept.Write(rest[:n]); wrote != n || err != nil {
				t.Fatalf("Write: %d, %v", wrote, err)
			}
			rest = rest[n:]
			if len(kept.kept) > 2*limit {
				t.Fatalf("holds %d bytes, limit %d", len(kept.kept), limit)
			}
		}
		if want := data[max(0, len(data)-limit):]; !bytes.Equal(kept.last(), want) {
			t.Errorf("kept %q, want %q", kept.last(), want)
		}
		if !utf8.ValidString(kept.String()) {
			t.Errorf("%q is no UTF-8", kept.String())
		}
	})
}
