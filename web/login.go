package web

import (
	"net/http"
	"time"
)

// keepSession is how long a browser stays logged in.
const keepSession = 7 * 24 * time.Hour

type loginView struct {
	layout
	To, Wrong string
}

func (*loginView) name() string { return "login" }

func (s *Server) loginPage(w http.ResponseWriter, r *http.Request) error {
	if !s.auth.isOn() || s.auth.hasSession(r) {
		http.Redirect(w, r, localPath(r.URL.Query().Get("to"), "/").String(), http.StatusSeeOther)
		return nil
	}
	return s.askToken(w, http.StatusOK, localPath(r.URL.Query().Get("to"), "/").String(), "")
}

func (s *Server) askToken(w http.ResponseWriter, status int, to, wrong string) error {
	p := &loginView{layout: layout{Title: "Log in"}, To: to, Wrong: wrong}
	text, err := s.execute(p)
	if err != nil {
		return err
	}
	return writePage(w, status, text)
}

// login gives a browser that knows the token a cookie in its place.
func (s *Server) login(w http.ResponseWriter, r *http.Request) error {
	to := localPath(r.PostFormValue("to"), "/").String()
	if s.auth.isOn() {
		if !s.auth.hasToken(r.PostFormValue("token")) {
			return s.askToken(w, http.StatusUnauthorized, to, "This is not the token.")
		}
		http.SetCookie(w, s.cookie(r, s.auth.session, int(keepSession.Seconds())))
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, s.cookie(r, "", -1))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
	return nil
}

// cookie is one that no script and no other site gets. It is for TLS alone if it was
// asked for by TLS, here or at a proxy before. Links from elsewhere bring it along, and
// reading is all that they can do.
func (s *Server) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
}
