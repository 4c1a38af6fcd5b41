package tasks

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/registry"
)

// timeFormat is RFC 3339 with milliseconds; times are UTC wherever it is used.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// field is one thing that a task is told of its run.
type field struct {
	name  string
	value any // a string, int or int64
}

// about lists what a task is told of its run, without the payload. isText says
// whether an id can stand as it is where the fields go; else it is in base64.
func about(job registry.Job, isText func(string) bool) []field {
	fields := []field{
		textOrBase64("id", job.ID, isText),
		{"task", job.Task},
		{"run_id", job.RunID},
		{"attempt", job.Attempt},
		{"due", job.Due.UTC().Format(timeFormat)},
		{"reason", string(job.Reason)},
	}
	if job.Count != 0 {
		fields = append(fields, field{"count", job.Count})
	}
	return fields
}

// fieldNames returns every name that about can give.
func fieldNames() []string {
	return []string{"id", "id_base64", "task", "run_id", "attempt", "due", "reason", "count"}
}

// envelope lists everything of a run, its payload as payload or payload_base64.
func envelope(job registry.Job) []field {
	fields := append(about(job, utf8.ValidString), textOrBase64("payload", string(job.Payload), utf8.ValidString))
	if job.Trace != "" {
		fields = append(fields, field{"traceparent", job.Trace})
	}
	return fields
}

func textOrBase64(name, value string, isText func(string) bool) field {
	if isText(value) {
		return field{name, value}
	}
	return field{name + "_base64", base64.StdEncoding.EncodeToString([]byte(value))}
}

// document is the envelope as one JSON object, without a newline at its end.
func document(job registry.Job) ([]byte, error) {
	doc := make(map[string]any)
	for _, f := range envelope(job) {
		doc[f.name] = f.value
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("encode the envelope: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
