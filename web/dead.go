package web

import (
	"context"
	"net/http"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

// deadBody is the longest body that names dead letters.
const deadBody = 4 << 20

func (s *Server) listDead(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "task", "prefix", "cursor", "limit"); err != nil {
		return err
	}
	q := r.URL.Query()
	page, err := s.page(r, client.Filter{State: client.Dead, Task: q.Get("task"), Prefix: q.Get("prefix")})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, deadPage{page.jobs(), page.Next})
}

type deadPage struct {
	Dead []view.Job `json:"dead"`
	Next string     `json:"next_cursor,omitempty"`
}

// letters are dead letters as they are chosen: exactly one of ids (of jobs or runs),
// a task, and all.
type letters struct {
	IDs       []string `json:"ids"`
	IDsBase64 []string `json:"ids_base64"`
	Task      string   `json:"task"`
	All       bool     `json:"all"`
}

func (l letters) read() (client.DeadFilter, error) {
	f := client.DeadFilter{IDs: l.IDs, Task: l.Task}
	for _, encoded := range l.IDsBase64 {
		id, err := view.DecodeBase64(encoded, "ids_base64")
		if err != nil {
			return f, invalid("%w", err)
		}
		f.IDs = append(f.IDs, id)
	}
	ways := 0
	for _, given := range []bool{len(f.IDs) > 0, f.Task != "", l.All} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return f, invalid(`say which dead letters, with one of "ids", "task" and "all": true`)
	}
	return f, nil
}

func (s *Server) requeueDead(w http.ResponseWriter, r *http.Request) error {
	return s.changeDead(w, r, "requeued", (*client.Client).RequeueDead)
}

func (s *Server) deleteDead(w http.ResponseWriter, r *http.Request) error {
	return s.changeDead(w, r, "deleted", (*client.Client).DeleteDead)
}

func (s *Server) changeDead(w http.ResponseWriter, r *http.Request, done string, change func(*client.Client, context.Context, client.DeadFilter) (int, error)) error {
	var l letters
	if err := readJSON(r, &l, "a choice of dead letters", false); err != nil {
		return err
	}
	f, err := l.read()
	if err != nil {
		return err
	}
	n, err := change(s.cfg.Client, r.Context(), f)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]int{done: n})
}
