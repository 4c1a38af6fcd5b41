package web

import (
	"context"
	"net/http"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

func (s *Server) deadPage(r *http.Request) (content, error) {
	q := r.URL.Query()
	f := client.Filter{State: client.Dead, Task: q.Get("task"), Prefix: q.Get("prefix")}
	p, err := s.listPage(r, f, "dead")
	if err != nil {
		return nil, err
	}
	p.Title, p.None = "Dead letters", "No dead letters"
	if f.Prefix == "" {
		p.All = "all dead letters"
		if f.Task != "" {
			p.All = "all of " + f.Task
		}
	}
	return p, nil
}

// confirmPage asks before what can't be undone.
type confirmPage struct {
	layout
	Question, Action, Button, Back string
	Fields                         []field
}

func (*confirmPage) name() string { return "confirm" }

type field struct{ Name, Value string }

// confirmed says whether somebody is sure; if not, it answers with the question.
func (s *Server) confirmed(w http.ResponseWriter, r *http.Request, question, button string) (bool, error) {
	if r.PostFormValue("sure") == "yes" {
		return true, nil
	}
	p := &confirmPage{
		layout: layout{Title: "Are you sure?"}, Question: question, Action: r.URL.Path, Button: button,
		Back: localPath(r.PostFormValue("back"), "/dead").String(),
	}
	for _, name := range []string{"run", "of", "task", "all", "back"} {
		if value := r.PostFormValue(name); value != "" {
			p.Fields = append(p.Fields, field{name, value})
		}
	}
	text, err := s.render(r, p)
	if err != nil {
		return false, err
	}
	return false, writePage(w, http.StatusOK, text)
}

// chosen are the dead letters that a form names, in the filter's terms and in words.
func chosen(r *http.Request) (f client.DeadFilter, words string, err error) {
	f.Task = r.PostFormValue("task")
	if r.PostFormValue("all") == "yes" {
		if f.Task == "" {
			return f, "all dead letters", nil
		}
		return f, "all dead letters of " + f.Task, nil
	}
	run, err := runOfField(r.PostFormValue("run"))
	of := view.Printable(r.PostFormValue("of")) // what the page said of which job it is
	return client.DeadFilter{IDs: []string{run}}, "the dead letter of " + of + " (run " + view.Printable(run) + ")", err
}

func (s *Server) requeueForm(w http.ResponseWriter, r *http.Request) error {
	return s.deadForm(w, r, "Requeue", "requeued", false, (*client.Client).RequeueDead)
}

func (s *Server) deleteForm(w http.ResponseWriter, r *http.Request) error {
	return s.deadForm(w, r, "Delete", "deleted", true, (*client.Client).DeleteDead)
}

// deadForm asks before it changes many, and if it can't be undone, before it changes
// one.
func (s *Server) deadForm(w http.ResponseWriter, r *http.Request, verb, done string, final bool, change func(*client.Client, context.Context, client.DeadFilter) (int, error)) error {
	f, words, err := chosen(r)
	if err != nil {
		return err
	}
	if final || len(f.IDs) == 0 {
		if sure, err := s.confirmed(w, r, verb+" "+words+"?", verb); err != nil || !sure {
			return err
		}
	}
	n, err := change(s.cfg.Client, r.Context(), f)
	if err != nil {
		return err
	}
	if n == 0 {
		return problem{Type: "not-found", Status: http.StatusNotFound, Title: "no such dead letter", Detail: "there is no dead letter any more: somebody else has changed it"}
	}
	return back(w, r, "/dead", done)
}
