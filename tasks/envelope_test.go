package tasks

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"
)

func TestEnvelopeTellsEverythingOfARun(t *testing.T) {
	job := aJob()
	job.Count, job.Payload = 5, []byte(`{"n":"<&>"}`)
	got, err := document(job)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"attempt":3,"count":5,"due":"2026-12-01T09:00:00.005Z","id":"order:42","payload":"{\"n\":\"<&>\"}","reason":"timer","run_id":"run-7","task":"cancel-order"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEnvelopeLeavesOutAZeroCountAndKeepsAnEmptyPayload(t *testing.T) {
	job := aJob()
	job.Payload = nil
	got, err := document(job)
	if err != nil {
		t.Fatal(err)
	}
	wantContains(t, string(got), `"payload":""`)
	wantWithout(t, string(got), "count")
}

func TestFieldNamesAreThoseThatAboutGives(t *testing.T) {
	job := aJob()
	job.Count = 1
	var given []string
	for _, isText := range []bool{true, false} {
		for _, f := range about(job, func(string) bool { return isText }) {
			given = append(given, f.name)
		}
	}
	slices.Sort(given)
	if want := slices.Sorted(slices.Values(fieldNames())); !slices.Equal(slices.Compact(given), want) {
		t.Errorf("about gives %q, fieldNames %q", given, want)
	}
}

// FuzzEnvelope checks that any id and payload come back from the JSON document
// and from the fields, byte for byte, under exactly one name.
func FuzzEnvelope(f *testing.F) {
	for _, id := range hostileIDs {
		f.Add(id, []byte(id))
	}
	f.Add("<&>\u2028", []byte(`{"a":"<b>"}`))
	f.Fuzz(func(t *testing.T, id string, payload []byte) {
		job := aJob()
		job.ID, job.Payload = id, payload
		text, err := document(job)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(text) || bytes.ContainsAny(text, "\r\n") {
			t.Errorf("not one line of UTF-8: %q", text)
		}
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		fields := make(map[string]any)
		for _, f := range envelope(job) {
			fields[f.name] = f.value
		}
		for _, values := range []map[string]any{doc, fields} {
			if got := unpack(t, values, "id"); got != id {
				t.Errorf("id %q came back as %q", id, got)
			}
			if got := unpack(t, values, "payload"); got != string(payload) {
				t.Errorf("payload %q came back as %q", payload, got)
			}
		}
	})
}

func unpack(t *testing.T, values map[string]any, name string) string {
	t.Helper()
	text, isText := values[name].(string)
	encoded, isBase64 := values[name+"_base64"].(string)
	if isText == isBase64 {
		t.Fatalf("%s must come under one name: %v", name, values)
	}
	if isText {
		return text
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return string(decoded)
}
