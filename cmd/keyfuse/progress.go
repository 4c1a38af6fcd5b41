package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

// progress makes a bar for so many bytes; -1 if nobody knows how many.
func (a *app) progress(size int64) progress {
	if !isTerminal(a.stderr) || a.env("NO_COLOR") != "" {
		return progress{}
	}
	return progress{progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetDescription("scheduling"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(100*time.Millisecond),
	)}
}

// A bar is decoration: that it can't be drawn stops nothing.

func (p progress) add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n)
	}
}

func (p progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

func (p progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// isTerminal says whether a person sees, or types, a stream.
func isTerminal(stream any) bool {
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// confirm asks a person; without a terminal the answer is no.
func (a *app) confirm(question string) (bool, error) {
	if !isTerminal(a.stdin) {
		return false, nil
	}
	if _, err := io.WriteString(a.stderr, question+" [y/N] "); err != nil {
		return false, err
	}
	answer := make([]byte, 16)
	n, err := a.stdin.Read(answer)
	if err != nil && err != io.EOF {
		return false, err
	}
	return n > 0 && (answer[0] == 'y' || answer[0] == 'Y'), nil
}
