package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// State is where a job or one of its runs is.
type State string

// The states.
const (
	Pending  State = "pending"
	Running  State = "running"
	Retrying State = "retrying"
	Dead     State = "dead"
)

// Run is one firing of a job, as its record in keyfuse:running:<task>, or
// keyfuse:runs:<task>, has it: a line of fields that are separated by spaces and then
// three strings end to end,
//
//	attempt due reason source count #id #error LF id error payload
//
// which claim.lua and hit.lua make, and the scripts amend (run.lua).
type Run struct {
	Task      string // not in the record: it is in the name of its key
	ID        string
	RunID     string // not in the record: it is its field
	Attempt   int    // counted when it was claimed, from 1; 0 if it was given back or requeued, or a threshold's and new
	Due       time.Time
	Reason    string // why: timer, threshold, timeout, manual
	Source    string // how it was found: index, event, sweep, threshold, manual
	Count     int64  // hits of a window; else 0
	LastError string
	Payload   []byte

	Lease string // the field of keyfuse:running:<task>; empty unless it is running
	State State
	At    time.Time // running: claimed at; retrying: next attempt; dead: died at
}

// Node is the node that holds the run, empty unless it is running.
func (r Run) Node() string { return leaseField(r.Lease, leaseNode) }

// The fields of a lease, "run attempt node at id" (see run.lua). An id may hold
// spaces.
const (
	leaseRun = iota
	leaseAttempt
	leaseNode
	leaseAt
	leaseID
)

// leaseField is a field of a lease, empty if it has no such field. A run id, which has
// no spaces, is a lease with its first field only.
func leaseField(lease string, n int) string {
	for range n {
		_, rest, ok := strings.Cut(lease, " ")
		if !ok {
			return ""
		}
		lease = rest
	}
	if n < leaseID {
		lease, _, _ = strings.Cut(lease, " ")
	}
	return lease
}

// claimedAt is when a lease's run was claimed.
func claimedAt(lease string) time.Time { return msTime(asInt(leaseField(lease, leaseAt))) }

var errBadRecord = errors.New("a run's record can't be read")

const recordFields = 7

// parseRecord reads a record into a run.
func parseRecord(record string) (Run, error) {
	line, body, ok := strings.Cut(record, "\n")
	var fields [recordFields]string
	found := 0
	for field := range strings.SplitSeq(line, " ") {
		if found < recordFields {
			fields[found] = field
		}
		found++
	}
	if !ok || found != recordFields {
		return Run{}, fmt.Errorf("%w: it begins %.60q", errBadRecord, record)
	}
	const countField = 4 // other clients may count down
	var n [recordFields]int64
	for i, field := range fields {
		if i == 2 || i == 3 {
			continue
		}
		v, err := strconv.ParseInt(field, 10, 64)
		if err != nil || v < 0 && i != countField {
			return Run{}, fmt.Errorf("%w: field %d of %.60q", errBadRecord, i, line)
		}
		n[i] = v
	}
	idLen, errLen := n[5], n[6]
	if idLen > int64(len(body)) || errLen > int64(len(body))-idLen {
		return Run{}, fmt.Errorf("%w: %.60q is longer than the record", errBadRecord, line)
	}
	return Run{
		ID:        body[:idLen],
		Attempt:   int(n[0]),
		Due:       time.UnixMilli(n[1]),
		Reason:    fields[2],
		Source:    fields[3],
		Count:     n[4],
		LastError: body[idLen : idLen+errLen],
		Payload:   []byte(body[idLen+errLen:]),
	}, nil
}

// readRecord is parseRecord for who shows runs: one that can't be read says so
// instead of hiding the others.
func readRecord(record string) Run {
	run, err := parseRecord(record)
	if err != nil {
		run.LastError = err.Error()
	}
	return run
}

// RunIDOf reads the run from a lease, or from a run id, which has no space.
func RunIDOf(member string) string { return leaseField(member, leaseRun) }
