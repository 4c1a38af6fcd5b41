package wire

import (
	"bytes"
	"errors"
)

// A job's trace context (W3C Trace Context, version 00) stands before its payload, so
// that it goes wherever that goes: into the run, each attempt and the dead letters. Most
// jobs have none, and for those this costs the look at one byte.
const (
	traceMark = "\x00traceparent "
	traceLen  = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	// TraceSize is by how many bytes a trace makes a payload longer.
	TraceSize = len(traceMark) + traceLen + 1
)

// ErrBadTrace is what CheckTrace says.
var ErrBadTrace = errors.New("not a traceparent: want version 00 of W3C Trace Context, as in 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// CheckTrace says what is wrong with a trace context; empty is none, and fine.
func CheckTrace(trace string) error {
	if trace != "" && !isTrace([]byte(trace)) {
		return ErrBadTrace
	}
	return nil
}

func isTrace(text []byte) bool {
	if len(text) != traceLen || string(text[:3]) != "00-" || text[35] != '-' || text[52] != '-' {
		return false
	}
	for i, c := range text {
		if i != 2 && i != 35 && i != 52 && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	const noTrace, noSpan = "00000000000000000000000000000000", "0000000000000000"
	return string(text[3:35]) != noTrace && string(text[36:52]) != noSpan
}

// WithTrace is a payload behind its trace context, which must have been checked; empty
// is none.
func WithTrace(trace string, payload []byte) []byte {
	if trace == "" {
		return payload
	}
	return append([]byte(traceMark+trace+"\n"), payload...)
}

// CutTrace is WithTrace undone. What only begins like it is a payload of somebody's.
func CutTrace(payload []byte) (trace string, rest []byte) {
	if len(payload) < TraceSize || payload[0] != traceMark[0] || payload[TraceSize-1] != '\n' || !bytes.HasPrefix(payload, []byte(traceMark)) {
		return "", payload
	}
	text := payload[len(traceMark) : TraceSize-1]
	if !isTrace(text) {
		return "", payload
	}
	return string(text), payload[TraceSize:]
}
