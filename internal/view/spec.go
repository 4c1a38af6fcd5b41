package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
)

// Spec is a job to schedule, as it is read. It has exactly one of In and At.
type Spec struct {
	ID            *string `json:"id"` // left out: a random one
	IDBase64      string  `json:"id_base64"`
	Task          string  `json:"task"`
	In            *string `json:"in"` // a duration, as 30m
	At            *string `json:"at"` // a time, as 2026-12-01T09:00:00Z
	Payload       string  `json:"payload"`
	PayloadBase64 string  `json:"payload_base64"`
	IfExists      string  `json:"if_exists"`   // fail, replace or keep
	Traceparent   string  `json:"traceparent"` // W3C Trace Context
}

// ParseSpec reads a job to schedule from JSON. A time without an offset is of the
// zone. Its errors are for people who wrote the text; what only a Client knows to be
// wrong, it leaves to that.
func ParseSpec(text []byte, zone *time.Location) (client.Spec, error) {
	var s Spec
	if err := Decode(text, &s, "a job"); err != nil {
		return client.Spec{}, err
	}
	if s.ID != nil && *s.ID == "" {
		return client.Spec{}, errors.New("the id is empty: name the job, or leave it out for a random id")
	}
	if (s.In == nil) == (s.At == nil) {
		return client.Spec{}, errors.New(`say when, with one of "in" and "at"`)
	}
	spec := client.Spec{Task: s.Task, IfExists: client.IfExists(s.IfExists), Trace: s.Traceparent}
	var err error
	if spec.In, spec.At, err = ParseWhen(s.In, s.At, zone); err != nil {
		return spec, err
	}
	id := ""
	if s.ID != nil {
		id = *s.ID
	}
	if spec.ID, err = Either(id, s.IDBase64, "id"); err != nil {
		return spec, err
	}
	payload, err := Either(s.Payload, s.PayloadBase64, "payload")
	spec.Payload = []byte(payload)
	return spec, err
}

// ParseWhen reads one of a delay and a time; the other is nil.
func ParseWhen(in, at *string, zone *time.Location) (time.Duration, time.Time, error) {
	if at != nil {
		t, err := config.ParseTime(*at, zone)
		return 0, t, err
	}
	d, err := config.ParseDuration(*in)
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("the delay %w", err)
	}
	return d, time.Time{}, nil
}

// Either is a text that may come in base64 instead.
func Either(text, encoded, name string) (string, error) {
	switch {
	case encoded == "":
		return text, nil
	case text != "":
		return "", fmt.Errorf("%s and %s_base64 exclude each other", name, name)
	}
	return DecodeBase64(encoded, name+"_base64")
}

// Decode reads one JSON object, of which all fields must be known; what names it in
// errors, which speak of JSON and not of Go.
func Decode(text []byte, to any, what string) error {
	if !utf8.Valid(text) { // it would be taken for other text
		return fmt.Errorf("not %s in JSON: it is no UTF-8; ids and payloads of any bytes go into id_base64 and payload_base64", what)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return notJSON(err, what)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the JSON object: write one for %s", what)
	}
	return nil
}

func notJSON(err error, what string) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case ok && wrong.Field == "":
		return fmt.Errorf("not %s in JSON: it is a JSON %s, not an object", what, wrong.Value)
	case ok:
		return fmt.Errorf("not %s in JSON: %q is a JSON %s, not %s", what, wrong.Field, wrong.Value, typeName(wrong))
	case errors.Is(err, io.EOF):
		return fmt.Errorf("not %s in JSON: there is nothing", what)
	}
	return fmt.Errorf("not %s in JSON: %s", what, strings.TrimPrefix(err.Error(), "json: "))
}

func typeName(wrong *json.UnmarshalTypeError) string {
	switch wrong.Type.Kind().String() {
	case "string", "ptr":
		return "a string"
	case "bool":
		return "true or false"
	case "slice":
		return "a list"
	}
	return "a whole number"
}
