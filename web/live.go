package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// liveEvery is how often a page that somebody looks at is made anew.
const liveEvery = 2 * time.Second

// maxStreams is how many pages are followed at a time.
const maxStreams = 100

// live streams a page whenever it has changed: an event `page` with its HTML, as a JSON
// string, after one `clock` with the daemon's time in ms. While it can't be made there is
// an event `stale` instead.
func (s *Server) live(w http.ResponseWriter, r *http.Request, make func(r *http.Request) (content, error)) error {
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return crossOrigin
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return problem{Type: "busy", Status: http.StatusServiceUnavailable, Title: "too many pages are followed", Detail: "close some", retryAfter: 30}
	}
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("%w: %w", errNoStream, err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	ticker := time.NewTicker(liveEvery)
	defer ticker.Stop()
	var last [sha256.Size]byte
	for {
		_ = conn.SetWriteDeadline(time.Now().Add(writePatience))
		fmt.Fprintf(w, "event: clock\ndata: %d\n\n", time.Now().UnixMilli())
		if c, err := make(r); err != nil { // the next look may do better
			fmt.Fprint(w, "event: stale\ndata: \"\"\n\n")
			last = [sha256.Size]byte{} // and then the page is sent, changed or not
		} else {
			text, err := s.render(r, c)
			if err != nil { // the stream has begun: nothing else can be answered
				s.cfg.Log.Error("a page that is followed failed", "route", r.Pattern, "err", err)
				return nil
			}
			if sum := sha256.Sum256(text); sum != last {
				last = sum
				if err := writeEvent(w, text); err != nil {
					return nil // nobody listens any more
				}
			}
		}
		if err := conn.Flush(); err != nil {
			return nil
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-s.closing:
			return nil
		case <-ticker.C:
		}
	}
}

func writeEvent(w http.ResponseWriter, text []byte) error {
	var data bytes.Buffer
	if err := json.NewEncoder(&data).Encode(string(text)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "event: page\ndata: %s\n\n", bytes.TrimSpace(data.Bytes()))
	return err
}
