package wire

import (
	"context"
	"time"
)

// IfExists says what to do with an id that is pending already.
type IfExists string

// The choices.
const (
	Fail    IfExists = "fail"
	Replace IfExists = "replace"
	Keep    IfExists = "keep"
)

// Armed is what became of a job that was to be armed.
type Armed int

// The outcomes; the numbers are arm.lua's.
const (
	ArmedNew Armed = iota
	ArmedReplaced
	ArmedKept
	RefusedPending // the id is pending already
	RefusedForeign // a key of that name holds other data than a job's
	RefusedWindow  // a threshold counts under this id
)

// ArmJob is a job to be armed. It must have been checked.
type ArmJob struct {
	ID      string
	Task    string
	Payload []byte
	When    When
}

// ArmResult is the outcome for one job.
type ArmResult struct {
	Outcome Armed
	Due     time.Time // of the job that is there now; zero if it has none
}

// MaxArm is how many jobs one call may arm: few enough for a script of a
// millisecond or two.
const MaxArm = 200

// Arm arms at most MaxArm jobs in one step and answers in their order, with
// Redis's time. token is any number that no other call has: by it a repeated
// call knows its own work.
func (s *Store) Arm(ctx context.Context, mode IfExists, token int64, jobs []ArmJob) ([]ArmResult, time.Time, error) {
	results, now, _, err := s.ArmConfirmed(ctx, Confirm{}, mode, token, jobs)
	return results, now, err
}

// ArmConfirmed is Arm, and says how many replicas have the jobs, those that were
// kept included.
func (s *Store) ArmConfirmed(ctx context.Context, c Confirm, mode IfExists, token int64, jobs []ArmJob) ([]ArmResult, time.Time, Confirmed, error) {
	args := make([]any, 0, 4+4*len(jobs))
	args = append(args, string(mode), s.Wake(s.db), token, distinct(jobs))
	for _, job := range jobs {
		args = append(args, job.ID, job.When.arg(), job.Task, ClassValue(job.Task, job.Payload))
	}
	reply, confirmed, err := s.runConfirmed(ctx, c, s.arm, args...)
	if err == nil && len(reply) != 1 {
		err = need(reply, 1+2*len(jobs))
	}
	if err != nil {
		return nil, time.Time{}, Confirmed{}, err
	}
	now := msTime(asInt(reply[0]))
	results := make([]ArmResult, len(jobs))
	for i := range results {
		if len(reply) == 1 { // all were armed
			results[i].Due = jobs[i].When.after(now)
			continue
		}
		results[i].Outcome = Armed(asInt(reply[1+2*i]))
		if due := asInt(reply[2+2*i]); due > 0 {
			results[i].Due = msTime(due)
		}
	}
	return results, now, confirmed, nil
}

// distinct is empty if an id is among the jobs twice.
func distinct(jobs []ArmJob) string {
	if len(jobs) > 1 {
		seen := make(map[string]struct{}, len(jobs))
		for _, job := range jobs {
			seen[job.ID] = struct{}{}
		}
		if len(seen) < len(jobs) {
			return ""
		}
	}
	return "distinct"
}
