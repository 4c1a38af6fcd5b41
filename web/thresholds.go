package web

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/config"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// maxItemBody is the longest body of a hit: an item in JSON may take six bytes for one.
const maxItemBody = 6<<20 + 8<<10

// definition is a threshold as it is sent. Durations have a unit.
type definition struct {
	ID            string  `json:"id"`
	IDBase64      string  `json:"id_base64"`
	Task          string  `json:"task"`
	Payload       string  `json:"payload"`
	PayloadBase64 string  `json:"payload_base64"`
	Count         int64   `json:"count"`
	Within        string  `json:"within"`
	OnTimeout     string  `json:"on_timeout"`
	Mode          string  `json:"mode"`
	Debounce      *string `json:"debounce"`
	MaxWait       *string `json:"max_wait"`
	MaxItems      int     `json:"max_items"`
	MaxBytes      int     `json:"max_bytes"`
}

func (d definition) read() (client.Threshold, error) {
	t := client.Threshold{
		Task: d.Task, Count: d.Count, OnTimeout: client.OnTimeout(d.OnTimeout), Mode: client.Mode(d.Mode),
		MaxItems: d.MaxItems, MaxBytes: d.MaxBytes,
	}
	var err error
	if t.ID, err = view.Either(d.ID, d.IDBase64, "id"); err != nil {
		return t, invalid("%w", err)
	}
	payload, err := view.Either(d.Payload, d.PayloadBase64, "payload")
	if err != nil {
		return t, invalid("%w", err)
	}
	t.Payload = []byte(payload)
	for _, f := range []struct {
		name string
		text *string
		to   *time.Duration
	}{{"within", &d.Within, &t.Within}, {"debounce", d.Debounce, &t.Debounce}, {"max_wait", d.MaxWait, &t.MaxWait}} {
		if f.text == nil {
			continue
		}
		if *f.to, err = config.ParseDuration(*f.text); err != nil {
			return t, invalid("%s %w", f.name, err)
		}
	}
	return t, nil
}

func (s *Server) defineThreshold(w http.ResponseWriter, r *http.Request) error {
	var d definition
	if err := readJSON(r, &d, "a threshold", false); err != nil {
		return err
	}
	t, err := d.read()
	if err != nil {
		return err
	}
	outcome, err := s.cfg.Client.DefineThreshold(r.Context(), t)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if outcome == client.DefinedNew {
		status = http.StatusCreated
	}
	// With its defaults, which the definition as it was sent does not have.
	if info, err := s.cfg.Client.Threshold(r.Context(), t.ID); err == nil {
		t = info.Threshold
	}
	return writeJSON(w, status, view.DefinedOf(t, outcome))
}

func (s *Server) listThresholds(w http.ResponseWriter, r *http.Request) error {
	all, err := s.thresholds(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string][]view.Threshold{"thresholds": all})
}

// readable are the thresholds whose definitions can be read; that there are others the
// log tells, and not which: ids are not for it.
func (s *Server) readable(r *http.Request) ([]client.ThresholdInfo, error) {
	infos, err := s.cfg.Client.Thresholds(r.Context())
	if err != nil && isOnly(err, client.ErrBadDefinition) {
		s.cfg.Log.Warn("some thresholds can't be read; keyfuse doctor lists them", "readable", len(infos))
		err = nil
	}
	return infos, err
}

// isOnly says whether all that an error joins is of a kind.
func isOnly(err, kind error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !isOnly(err, kind) })
	}
	return errors.Is(err, kind)
}

func (s *Server) thresholds(r *http.Request) ([]view.Threshold, error) {
	infos, err := s.readable(r)
	if err != nil {
		return nil, err
	}
	all := make([]view.Threshold, 0, len(infos))
	for _, info := range infos {
		all = append(all, view.ThresholdOf(info))
	}
	return all, nil
}

func (s *Server) showThreshold(w http.ResponseWriter, r *http.Request) error {
	info, err := s.cfg.Client.Threshold(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view.ThresholdOf(info))
}

func (s *Server) removeThreshold(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	was, _ := s.cfg.Client.Threshold(r.Context(), id) // one that can't be read can be removed
	if err := s.cfg.Client.RemoveThreshold(r.Context(), id); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view.RemovedOf(id, was.Open))
}

// hitBody is a hit as it is sent; it may be empty.
type hitBody struct {
	By   *int64 `json:"by"`
	Item string `json:"item"`
}

// hit counts a hit. An idempotency key is its request id, by which it counts once.
func (s *Server) hit(w http.ResponseWriter, r *http.Request) error {
	var body hitBody
	if err := readJSON(r, &body, "a hit", true); err != nil {
		return err
	}
	hit := client.Hit{ID: r.PathValue("id"), Item: body.Item, RequestID: r.Header.Get(idempotencyKey)}
	if body.By != nil {
		if hit.By = *body.By; hit.By < 1 {
			return invalid("by is %d, want at least 1", hit.By)
		}
	}
	counted, err := s.cfg.Client.Hit(r.Context(), hit)
	if errors.Is(err, client.ErrNotFound) {
		err = client.ErrNoThreshold
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view.HitOf(counted))
}
