package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
)

// auth knows who bears the token. Comparisons are of hashes, in constant time, so that
// not even the token's length can be measured.
type auth struct {
	token [sha256.Size]byte
	// session is what a browser keeps in place of the token: it opens nothing but
	// this daemon and those that have the same token.
	session string
	on      bool
}

const sessionCookie = "keyfuse"

func newAuth(token string) auth {
	if token == "" {
		return auth{}
	}
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("keyfuse dashboard session, version 1"))
	return auth{token: sha256.Sum256([]byte(token)), session: hex.EncodeToString(mac.Sum(nil)), on: true}
}

func (a auth) isOn() bool { return a.on }

func (a auth) allows(r *http.Request, who access) bool {
	switch {
	case !a.on || who == forAll:
		return true
	case a.hasToken(bearer(r)):
		return true
	}
	// A page's own script calls the API with the cookie; whether a request comes
	// from a page of another site was looked at before.
	return a.hasSession(r)
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func (a auth) hasToken(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1
}

func (a auth) hasSession(r *http.Request) bool {
	cookie, err := r.Cookie(sessionCookie)
	return err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(a.session)) == 1
}

// refuse answers who may not.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, who access) {
	if who == forPeople {
		to := "/" // a form can't be sent again
		if r.Method == http.MethodGet {
			to = r.URL.RequestURI()
		}
		http.Redirect(w, r, "/login?to="+url.QueryEscape(to), http.StatusSeeOther)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="keyfuse"`)
	writeProblem(w, problem{
		Type: "unauthorized", Status: http.StatusUnauthorized, Title: "the token is missing or wrong",
		Detail: "send the http.token of the daemon's config file, as in Authorization: Bearer TOKEN",
	})
}
