package web

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.yaml
var openAPIText []byte

// openAPI answers with the description of the API.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPIText) // who has gone needs no answer
	return nil
}
