package registry_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/keyfuse-io/keyfuse/registry"
)

type order struct {
	Order int
	Note  string
}

// run puts a payload through Handle, and returns what fn was given, nil if it
// was not called.
func run(t *testing.T, payload string, result error) (*order, error) {
	t.Helper()
	r := registry.New()
	var got *order
	registry.Handle(r, "cancel", func(_ context.Context, job registry.Job, o order) error {
		if string(job.Payload) != payload {
			t.Errorf("payload %q, want %q", job.Payload, payload)
		}
		got = &o
		return result
	}, registry.Options{})
	task, _ := r.Lookup("cancel")
	err := task.Handler.Handle(t.Context(), registry.Job{Task: "cancel", Payload: []byte(payload)})
	return got, err
}

func TestHandleDecodes(t *testing.T) {
	for payload, want := range map[string]order{
		`{"order":42,"note":"€"}`: {42, "€"},
		" {\"order\":1}\n":        {1, ""},
		"":                        {},
		" \n\t":                   {},
		"null":                    {},
		"{}":                      {},
	} {
		if got, err := run(t, payload, nil); err != nil || got == nil || *got != want {
			t.Errorf("%q: got %+v, %v", payload, got, err)
		}
	}
}

func TestHandleBuriesWhatDoesNotDecode(t *testing.T) {
	for _, payload := range []string{"x", "{", `{"order":"42"}`, `[1]`, `{"order":1}{"order":2}`, "\xff", `{"order":1e99}`} {
		got, err := run(t, payload, nil)
		if verdict, _ := registry.Judge(err); verdict != registry.VerdictDead || got != nil {
			t.Errorf("%q: called with %+v, %v", payload, got, err)
		}
	}
}

func TestHandlePassesErrorsOn(t *testing.T) {
	if _, err := run(t, "{}", io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestHandlePanicsWhereRegisterDoes(t *testing.T) {
	nothing := func(context.Context, registry.Job, order) error { return nil }
	r := registry.New()
	registry.Handle(r, "a", nothing, registry.Options{})
	for what, f := range map[string]func(){
		"a name that is taken": func() { registry.Handle(r, "a", nothing, registry.Options{}) },
		"no name":              func() { registry.Handle(r, "", nothing, registry.Options{}) },
		"no function":          func() { registry.Handle[order](r, "b", nil, registry.Options{}) },
	} {
		if panics(f) == "" {
			t.Errorf("%s: no panic", what)
		}
	}
}
