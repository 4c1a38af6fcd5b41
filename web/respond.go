package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"github.com/keyfuse-io/keyfuse/internal/view"
)

// writeJSON answers with one document.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// Who has gone needs no answer, and the status is out.
	_ = encoder(w).Encode(v)
	return nil
}

func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// readJSON reads the one object of a body; what names it in errors. An empty body
// leaves the object as it is if that is allowed.
func readJSON(r *http.Request, to any, what string, emptyToo bool) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return readError(err)
	}
	if len(text) == 0 && emptyToo {
		return nil
	}
	if err := wantsJSON(r); err != nil {
		return err
	}
	if err := view.Decode(text, to, what); err != nil {
		return malformed(err)
	}
	return nil
}

// readError is a body that could not be read to its end.
func readError(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return err
	}
	return malformed(fmt.Errorf("the body could not be read: %w", err))
}

// wantsJSON refuses other types of content. A form of another site's page can't send
// this one without asking first.
func wantsJSON(r *http.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == "application/json" {
		return nil
	}
	return problem{
		Type: "content-type", Status: http.StatusUnsupportedMediaType, Title: "not this type of content",
		Detail: "send JSON, with Content-Type: application/json",
	}
}

// The limits of a list.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, invalid("limit is %q, want 1 to %d", text, maxLimit)
	}
	return n, nil
}

// only refuses parameters of the query that a route does not have: a misspelt filter
// would choose all.
func only(r *http.Request, names ...string) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // Query would leave out what it can't read
		return invalid("the query can't be read: %w", err)
	}
	for name := range query {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if !known {
			return invalid("there is no parameter %q here, want some of %q", name, names)
		}
	}
	return nil
}
