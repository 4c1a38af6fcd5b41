package web

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/internal/view"
)

//go:embed ui
var ui embed.FS

// pages are the routes of the dashboard. Each page is rendered here, and works without
// scripts; with them, a page follows what happens (see live).
func (s *Server) pages() []route {
	page := func(pattern string, show func(r *http.Request) (content, error)) route {
		return route{pattern: pattern, access: forPeople, handle: func(w http.ResponseWriter, r *http.Request) error {
			return s.show(w, r, show)
		}}
	}
	form := func(pattern string, handle handler) route {
		return route{pattern: pattern, access: forPeople, handle: handle, limit: smallBody}
	}
	return []route{
		page("GET /{$}", s.overviewPage),
		page("GET /jobs", s.jobsPage),
		page("GET /jobs/{id}", s.jobPage),
		page("GET /thresholds", s.thresholdsPage),
		page("GET /dead", s.deadPage),
		page("GET /tasks", s.tasksPage),

		form("POST /jobs/{id}/cancel", s.cancelForm),
		form("POST /jobs/{id}/fire", s.fireForm),
		form("POST /jobs/{id}/reschedule", s.rescheduleForm),
		{pattern: "POST /dead/requeue", access: forPeople, handle: s.requeueForm, limit: smallBody, long: true},
		{pattern: "POST /dead/delete", access: forPeople, handle: s.deleteForm, limit: smallBody, long: true},
		form("POST /tasks/{task}/pause", s.pauseForm),
		form("POST /tasks/{task}/resume", s.resumeForm),

		{pattern: "GET /login", access: forAll, handle: s.loginPage},
		{pattern: "POST /login", access: forAll, handle: s.login, limit: smallBody},
		{pattern: "POST /logout", access: forAll, handle: s.logout, limit: smallBody},
		{pattern: "GET /static/{file}", access: forAll, handle: s.static},
	}
}

// content is what a page has of its own: the template's name, the title and the data,
// of which layout is a part.
type content interface {
	name() string
	head() *layout
}

// layout is what all pages have.
type layout struct {
	Title string
	Live  bool   // the page follows what happens
	Here  string // its own address, for forms that come back to it
	Nav   []link
	Leave bool // there is somebody to log out
	Flash string
}

func (l *layout) head() *layout { return l }

type link struct {
	Path, Name string
	Here       bool
}

var sections = []link{
	{Path: "/", Name: "Overview"},
	{Path: "/jobs", Name: "Jobs"},
	{Path: "/thresholds", Name: "Thresholds"},
	{Path: "/dead", Name: "Dead letters"},
	{Path: "/tasks", Name: "Tasks"},
}

// show answers with a page, or with a stream of its changes for who asks for that.
func (s *Server) show(w http.ResponseWriter, r *http.Request, make func(r *http.Request) (content, error)) error {
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return s.live(w, r, make)
	}
	c, err := make(r)
	if err != nil {
		return err
	}
	text, err := s.render(r, c)
	if err != nil {
		return err
	}
	return writePage(w, http.StatusOK, text)
}

func writePage(w http.ResponseWriter, status int, text []byte) error {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) // who has gone needs no answer
	return nil
}

func (s *Server) render(r *http.Request, c content) ([]byte, error) {
	l := c.head()
	l.Here, l.Leave = r.URL.RequestURI(), s.auth.isOn()
	l.Flash = flashes[r.URL.Query().Get("done")]
	for _, section := range sections {
		section.Here = section.Path == r.URL.Path || section.Path != "/" && strings.HasPrefix(r.URL.Path, section.Path+"/")
		l.Nav = append(l.Nav, section)
	}
	return s.execute(c)
}

// execute renders a page as it is: without the way to other pages, unless it has that.
func (s *Server) execute(c content) ([]byte, error) {
	var out bytes.Buffer
	if err := s.templates[c.name()].Execute(&out, c); err != nil {
		return nil, fmt.Errorf("the page %s: %w", c.name(), err)
	}
	return out.Bytes(), nil
}

// flashes are what is said when something was done: only these can be, whatever a link
// asks for.
var flashes = map[string]string{
	"cancelled": "Cancelled.", "fired": "It is due now.", "rescheduled": "It has another due time.",
	"requeued": "Requeued: they have all their attempts again.", "deleted": "Deleted.",
	"paused": "Paused: no node claims its jobs until it is resumed.", "resumed": "Resumed.",
}

// back sends a browser to where a form came from, and says there what was done.
func back(w http.ResponseWriter, r *http.Request, otherwise, done string) error {
	to := localPath(r.PostFormValue("back"), otherwise)
	q := to.Query()
	q.Set("done", done)
	to.RawQuery = q.Encode()
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
	return nil
}

// localPath is a path of this server: a form must not send anybody elsewhere.
func localPath(text, otherwise string) *url.URL {
	for _, candidate := range []string{text, otherwise} {
		to, err := url.Parse(candidate)
		if err == nil && strings.HasPrefix(candidate, "/") && !strings.HasPrefix(candidate, "//") && !strings.Contains(candidate, `\`) {
			return &url.URL{Path: to.Path, RawPath: to.RawPath, RawQuery: to.RawQuery}
		}
	}
	return &url.URL{Path: "/"}
}

// parseTemplates puts each page together with the layout.
func parseTemplates() (map[string]*template.Template, error) {
	files, err := fs.Sub(ui, "ui/templates")
	if err != nil {
		return nil, err
	}
	base, err := template.New("layout.html").Funcs(templateFuncs).ParseFS(files, "layout.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*.html")
	if err != nil {
		return nil, err
	}
	all := make(map[string]*template.Template)
	for _, name := range names {
		if name == "layout.html" {
			continue
		}
		page, err := template.Must(base.Clone()).ParseFS(files, name)
		if err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(name, ".html")] = page
	}
	return all, nil
}

var templateFuncs = template.FuncMap{
	"stamp":     view.Stamp,
	"clock":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"segment":   url.PathEscape,
	"printable": view.Printable,
	"number":    thousands[int64],
	"bytes":     view.Bytes,
	"join":      func(all []string) string { return strings.Join(all, ", ") },
}

// thousands is a number with commas.
func thousands[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// static serves what pages load: it is a part of this program, and can be kept until
// there is another.
func (s *Server) static(w http.ResponseWriter, r *http.Request) error {
	files, err := fs.Sub(ui, "ui/static")
	if err != nil {
		return err
	}
	name := r.PathValue("file")
	if !slices.Contains([]string{"keyfuse.css", "keyfuse.js", "icon.svg"}, name) {
		return problem{Type: "no-route", Status: http.StatusNotFound, Title: "there is nothing here"}
	}
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeFileFS(w, r, files, name)
	return nil
}

// errorPage is what people get in the place of a problem document.
type errorPage struct {
	layout
	Detail, Back string
}

func (errorPage) name() string { return "error" }

// failPage answers with what went wrong, to people.
func (s *Server) failPage(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.isOurs() {
		s.cfg.Log.Warn("a page failed", "route", r.Pattern, "err", err)
	}
	page := &errorPage{layout{Title: capital(p.Title)}, p.Detail, "/"}
	text, err := s.render(r, page)
	if err != nil {
		s.cfg.Log.Error("an error page failed", "err", err)
		writeProblem(w, p)
		return
	}
	_ = writePage(w, p.Status, text)
}

func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(string(r)) + s[size:]
}

var errNoStream = errors.New("this connection can't be kept open")
