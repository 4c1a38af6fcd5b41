// Package tasks holds the ready-made tasks that a configuration can name: log,
// http, exec, stream, list and publish. Each has a config struct, passed by
// value, whose zero fields mean the defaults that their comments tell, and a
// constructor that refuses a config it could not serve.
//
// What they promise, all of them:
//
//   - A run is told under the same names everywhere: id, task, run_id, attempt,
//     due (RFC 3339, UTC, milliseconds), reason, count (left out when zero) and
//     payload. An id or payload that the carrier can't hold as text comes in
//     base64 as id_base64 or payload_base64 instead. The exec task upper-cases
//     the names behind KEYFUSE_, the http task makes Keyfuse- headers of them.
//   - Ids and payloads are hostile input. Nothing they hold can add a header, a
//     variable, an argument or a line to a log.
//   - What they keep in memory and what their errors and logs show is bounded,
//     whatever the other side sends or prints. No error or log shows a secret.
//   - A handler returns soon after its context ends, and its error then wraps
//     context.Cause, so that a shutdown is told from a failure.
//   - Delivery is at least once. The run id is the same for every attempt: it is
//     what a receiver drops duplicates by.
package tasks

import (
	"context"
	"time"
)

// because returns why ctx ended, if it did: a failure after that is no failure
// of the task's own. Else it returns err.
func because(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done() // a connection with the same deadline may notice it first
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
