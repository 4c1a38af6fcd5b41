package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The limits of a connection. What takes longer by its nature (a bulk, a stream of
// events) moves its own deadlines on.
const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 30 * time.Second
	longTimeout    = 10 * time.Minute // for what changes any number of dead letters
	idleTimeout    = 2 * time.Minute
	maxHeader      = 16 << 10
	lastAnswers    = 5 * time.Second // at the end, for requests under way
)

// Serve answers requests on a listener, which it closes, until ctx ends; then those
// that are under way have five seconds. It returns an error if it could not go on.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	server.RegisterOnShutdown(s.endStreams)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(base, lastAnswers)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-ended // http.ErrServerClosed
	return err
}
