package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// What terminals understand (ECMA-48, and xterm's second screen).
const (
	secondScreen = "\x1b[?1049h\x1b[?25l" // and no cursor
	firstScreen  = "\x1b[?25h\x1b[?1049l"
	toTheTop     = "\x1b[H"
	clearLine    = "\x1b[K"
	clearBelow   = "\x1b[J"
)

// watch shows what show prints, again and again, on a terminal's second screen, until
// Ctrl-C. What goes wrong is shown as well, and the next look may do better.
func (a *app) watch(ctx context.Context, every time.Duration, show func(ctx context.Context, a *app) error) error {
	switch asJSON, _ := a.json(); {
	case asJSON || !isTerminal(a.stdout):
		return usagef("only a terminal can be watched: leave -o json and pipes out, or see %s stats", a.self)
	case every < 100*time.Millisecond:
		return usagef("--every %s is too short: want 100ms or more", every)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := a.printf(secondScreen); err != nil {
		return err
	}
	defer a.printf(firstScreen) //nolint:errcheck // the terminal is gone then
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		var out bytes.Buffer
		page := *a
		page.stdout = &out
		err := show(ctx, &page)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			out.WriteString("\n" + oneLine(explain(err).Error()) + "\n")
		}
		if err := a.draw(out.String()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// draw puts a text in the place of the last one, as much as the terminal has room for.
func (a *app) draw(text string) error {
	width, height := a.screen()
	var b strings.Builder
	b.WriteString(toTheTop)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines[:min(len(lines), height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(cutLine(line, width) + clearLine)
	}
	b.WriteString(clearBelow)
	return a.printf("%s", b.String())
}

func cutLine(line string, width int) string {
	if utf8.RuneCountInString(line) > width {
		return string([]rune(line)[:width])
	}
	return line
}

// screen is how many characters and lines the terminal shows.
func (a *app) screen() (width, height int) {
	if file, ok := a.stdout.(interface{ Fd() uintptr }); ok {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}
