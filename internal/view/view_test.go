package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
)

func FuzzALineOfManyIsAJobOrAnError(f *testing.F) {
	for _, s := range []string{
		`{"id":"a","task":"t","in":"1h","payload":"x"}`, `{"task":"t","at":"2030-01-01T00:00:00Z"}`,
		`{"id_base64":"/wE=","task":"t","in":"1s"}`, `{`, `null`, `[]`, `{"in":"1s","at":""}`, `{"in":"1s"}{}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := ParseSpec([]byte(s), time.UTC)
		if err != nil {
			return
		}
		if spec.In < 0 || spec.In > 0 && !spec.At.IsZero() {
			t.Errorf("%q is due in %s and at %s", s, spec.In, spec.At)
		}
		if !json.Valid([]byte(s)) {
			t.Errorf("%q is no JSON, and was taken for a job", s)
		}
	})
}

func FuzzADurationInJSONIsReadAsItWas(f *testing.F) {
	for _, ms := range []int64{0, 1, 1500, 60_000, 60_500, 3_600_001, client.MaxDelay.Milliseconds()} {
		f.Add(ms)
	}
	f.Fuzz(func(t *testing.T, ms int64) {
		if ms < 0 || ms > client.MaxDelay.Milliseconds() {
			return
		}
		d := time.Duration(ms) * time.Millisecond
		if got, err := config.ParseDuration(Exact(d)); err != nil || got != d {
			t.Errorf("%s is written %q and read %s, %v", d, Exact(d), got, err)
		}
	})
}

func TestStampsAreUTCWithMilliseconds(t *testing.T) {
	at := time.Date(2026, 12, 1, 10, 0, 0, 1_500_000, time.FixedZone("", 3600))
	if got := Stamp(at); got != "2026-12-01T09:00:00.001Z" {
		t.Errorf("stamp: %s", got)
	}
	if got := Stamp(time.Time{}); got != "" {
		t.Errorf("stamp of the zero time: %s", got)
	}
}

func TestAJobInJSONSaysWhatItHasAndNoMore(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for want, job := range map[string]client.Job{
		`{"id":"a","task":"t","state":"pending","due":"2026-12-01T09:00:00.000Z","payload":"x","trigger":"timer"}`: {
			ID: "a", Task: "t", State: client.Pending, Payload: []byte("x"), Due: at,
		},
		`{"id_base64":"/w==","task":"t","state":"running","payload_base64":"/g==","attempt":2,"run_id":"r","node":"n","trigger":"timer","started":"2026-12-01T09:00:00.000Z"}`: {
			ID: "\xff", Task: "t", State: client.Running, Payload: []byte("\xfe"), RunID: "r", Attempt: 2, Node: "n", At: at,
		},
		`{"id":"a","task":"t","state":"dead","attempt":1,"last_error":"\ufffd","run_id":"r","trigger":"threshold","reason":"threshold","died":"2026-12-01T09:00:00.000Z","count":7}`: {
			ID: "a", Task: "t", State: client.Dead, RunID: "r", Attempt: 1, At: at, LastError: "\xff", Reason: "threshold", Count: 7,
		},
	} {
		text, err := json.Marshal(JobOf(job))
		if err != nil || string(text) != strings.ReplaceAll(want, "\\ufffd", "\ufffd") {
			t.Errorf("got  %s, %v\nwant %s", text, err, want)
		}
	}
}

func TestASpecSaysWhatIsWrongWithIt(t *testing.T) {
	for text, want := range map[string]string{
		``:                                       "not a job in JSON: there is nothing",
		`[]`:                                     "not a job in JSON: it is a JSON array, not an object",
		`{"in":5}`:                               `not a job in JSON: "in" is a JSON number, not a string`,
		`{"when":1}`:                             `not a job in JSON: unknown field "when"`,
		`{"in":"1s"} x`:                          "something follows the JSON object: write one for a job",
		`{"task":"t"}`:                           `say when, with one of "in" and "at"`,
		`{"task":"t","in":"1s","at":"x"}`:        `say when, with one of "in" and "at"`,
		`{"task":"t","in":"90"}`:                 `the delay "90" has no unit: write 90s`,
		`{"id":"","task":"t","in":"1s"}`:         "the id is empty: name the job, or leave it out for a random id",
		`{"id_base64":"!","task":"t","in":"1s"}`: `id_base64 is no base64: "!"`,
		`{"payload":"a","payload_base64":"YQ==","task":"t","in":"1s"}`: "payload and payload_base64 exclude each other",
	} {
		if _, err := ParseSpec([]byte(text), time.UTC); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
