package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

const aTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestATraceStandsBeforeThePayload(t *testing.T) {
	for _, payload := range []string{"", "x", "\x00traceparent ", strings.Repeat("long", 1000)} {
		joined := wire.WithTrace(aTrace, []byte(payload))
		if len(joined) != len(payload)+wire.TraceSize {
			t.Errorf("%d bytes with a trace, %d without", len(joined), len(payload))
		}
		if trace, rest := wire.CutTrace(joined); trace != aTrace || string(rest) != payload {
			t.Errorf("%q and %q came back of %q", trace, rest, payload)
		}
		if trace, rest := wire.CutTrace(wire.WithTrace("", []byte(payload))); trace != "" || string(rest) != payload {
			t.Errorf("%q and %q came back of %q without one", trace, rest, payload)
		}
	}
}

func TestOnlyTracesAreTraces(t *testing.T) {
	for _, bad := range []string{
		"00", aTrace + "0", aTrace[1:], "01" + aTrace[2:], strings.ToUpper(aTrace), strings.Replace(aTrace, "-", "_", 2),
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		strings.Replace(aTrace, "0af7", "\n\x00\r ", 1),
	} {
		if wire.CheckTrace(bad) == nil {
			t.Errorf("%q is taken for a trace", bad)
		}
		payload := []byte("\x00traceparent " + bad + "\nrest")
		if trace, rest := wire.CutTrace(payload); trace != "" || !bytes.Equal(rest, payload) {
			t.Errorf("%q was cut off", trace)
		}
	}
	for _, good := range []string{"", aTrace, "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-00"} {
		if err := wire.CheckTrace(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}
