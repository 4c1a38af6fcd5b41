//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/keyfuse-io/keyfuse/client"
)

// What is watched is drawn over the look before, as much as the terminal has room for;
// what goes wrong is a look as well; and at the end the first screen is back.
func TestWatchingDrawsLookAfterLookOnAScreenOfItsOwn(t *testing.T) {
	terminal, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 3, Cols: 12}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() {
		defer tty.Close()
		looks := 0
		a := &app{stdout: tty, lookup: func(string) (string, bool) { return "", false }}
		watched <- a.watch(ctx, 100*time.Millisecond, func(_ context.Context, page *app) error {
			switch looks++; looks {
			case 1:
				return page.printf("1: ü and more than twelve\nb\nc\nd\n")
			case 2:
				return client.ErrNotFound
			}
			cancel() // in the middle of a look
			return page.printf("3")
		})
	}()
	out, err := io.ReadAll(terminal)
	if err != nil && !errors.Is(err, syscall.EIO) { // so Linux says that nobody has it open any more
		t.Fatal(err)
	}
	if err := <-watched; err != nil {
		t.Error(err)
	}
	look := func(lines ...string) string {
		return toTheTop + strings.Join(lines, clearLine+"\r\n") + clearLine + clearBelow
	}
	want := secondScreen + look("1: ü and mor", "b", "c") + look("", "no such job;") + firstScreen
	if got := strings.ReplaceAll(string(out), "\r\r\n", "\r\n"); got != want { // terminals add one
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
