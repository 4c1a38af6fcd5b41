package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"
)

// payloadFlags are a payload as it is, or the file that holds it.
type payloadFlags struct{ text, file string }

func (f *payloadFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.text, "payload", "", "what the task is given")
	cmd.Flags().StringVar(&f.file, "payload-file", "", "read the payload from a file, - for stdin")
}

// payload reads the payload; a text over the limit is refused by the client.
func (a *app) payload(f payloadFlags, limit int64) ([]byte, error) {
	switch {
	case f.file == "":
		return []byte(f.text), nil
	case f.text != "":
		return nil, usagef("--payload and --payload-file exclude each other: leave one out")
	}
	in := a.stdin
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return nil, failf(exitFailed, "can't read the payload: %w", err)
		}
		defer file.Close() //nolint:errcheck // nothing was written
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, usagef("the payload has more than the %d bytes that are allowed: store it elsewhere and pass its name", limit)
	}
	return data, err
}
