package embedded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// What Redis allows by default.
const (
	maxArgs    = 1 << 20
	maxBulk    = 512 << 20
	maxRequest = 1 << 30

	smallBulk = 64 << 10 // what is read at once, and kept for the next
)

// A protocolError is what a client hears before it is cut off.
type protocolError string

func (e protocolError) Error() string { return string(e) }

// readRequest appends the next request to buf: an array of at least one bulk
// string, checked, for the engine trusts lengths that a client sends. Empty
// arrays are skipped, as Redis does. Inline commands are refused: a browser
// can be made to send them.
func readRequest(r *bufio.Reader, buf *bytes.Buffer) error {
	n := 0
	for n <= 0 {
		var err error
		if n, err = readLength(r, '*', maxArgs); err != nil {
			return err
		}
	}
	buf.Write(appendLength(buf.AvailableBuffer(), '*', n))
	for range n {
		if err := readBulk(r, buf); err != nil {
			return err
		}
	}
	return nil
}

func readBulk(r *bufio.Reader, buf *bytes.Buffer) error {
	size, err := readLength(r, '$', maxBulk)
	if err != nil {
		return err
	}
	if size < 0 {
		return protocolError("invalid bulk length")
	}
	if buf.Len()+size > maxRequest {
		return protocolError("too big request")
	}
	buf.Write(appendLength(buf.AvailableBuffer(), '$', size))
	if err := copyBytes(r, buf, size+2); err != nil {
		return err
	}
	if !bytes.HasSuffix(buf.Bytes(), []byte("\r\n")) {
		return protocolError("bulk string without end of line")
	}
	return nil
}

// copyBytes takes memory for what comes, not for what was announced.
func copyBytes(r *bufio.Reader, buf *bytes.Buffer, n int) error {
	if n > smallBulk {
		_, err := io.CopyN(buf, r, int64(n))
		return err
	}
	buf.Grow(n)
	free := buf.AvailableBuffer()[:n]
	_, err := io.ReadFull(r, free)
	buf.Write(free)
	return err
}

func appendLength(dst []byte, mark byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, mark), int64(n), 10), "\r\n"...)
}

// appendStrings appends a list of strings whose kind is mark.
func appendStrings(dst []byte, mark byte, items ...string) []byte {
	dst = appendLength(dst, mark, len(items))
	for _, item := range items {
		dst = append(appendLength(dst, '$', len(item)), item...)
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// readLength reads a line such as "*3" that begins with mark.
func readLength(r *bufio.Reader, mark byte, limit int) (int, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return 0, protocolError("too big line")
	}
	if err != nil {
		return 0, err
	}
	if line[0] != mark {
		return 0, protocolError(fmt.Sprintf("expected '%c', got %q", mark, line[0]))
	}
	digits, ok := bytes.CutSuffix(line[1:], []byte("\r\n"))
	n, err := strconv.Atoi(string(digits))
	if !ok || err != nil || n > limit {
		return 0, protocolError("invalid length")
	}
	return n, nil
}
