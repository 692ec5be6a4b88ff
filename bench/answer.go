package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// answer holds the parts of an HTTP answer that the load needs.
type answer struct {
	status int
	start  []byte // of the body, at most startLength bytes; valid until the next read
}

const startLength = 256

// readAnswer reads one answer of HTTP/1.1 to its end.
func readAnswer(r *bufio.Reader, start []byte) (answer, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return answer{}, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return answer{}, fmt.Errorf("not an HTTP answer: %q", line)
	}
	a := answer{start: start[:0]}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return answer{}, err
	}
	length, chunked := int64(0), false
	err = readHeader(r, func(name, value []byte) (err error) {
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.ParseInt(string(value), 10, 64)
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		case bytes.EqualFold(name, []byte("Connection")) && bytes.EqualFold(value, []byte("close")):
			err = errors.New("the server closes the connection")
		}
		return err
	})
	if err != nil {
		return a, err
	}
	if chunked {
		return a, a.readChunks(r)
	}
	return a, a.readBody(r, length)
}

// readHeader reads the fields of a header to its end.
func readHeader(r *bufio.Reader, field func(name, value []byte) error) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if err := field(name, bytes.TrimSpace(value)); err != nil {
			return err
		}
	}
}

func (a *answer) readChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		length, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 64)
		if err != nil {
			return err
		}
		if err := a.readBody(r, length); err != nil {
			return err
		}
		if _, err := r.Discard(len("\r\n")); err != nil || length == 0 {
			return err
		}
	}
}

// readBody keeps the start of what it reads.
func (a *answer) readBody(r *bufio.Reader, length int64) error {
	if missing := min(int64(startLength-len(a.start)), length); missing > 0 {
		part, err := r.Peek(int(missing))
		if err != nil {
			return err
		}
		a.start = append(a.start, part...)
	}
	_, err := r.Discard(int(length))
	return err
}

func (a *answer) unexpected(status int) error {
	return fmt.Errorf("answer %d, not %d: %s", a.status, status, a.start)
}

// accepted returns the number of pushes that an answer has accepted.
func (a *answer) accepted() int {
	switch a.status {
	case 201:
		return 1
	case 200:
		_, after, found := bytes.Cut(a.start, []byte(`"accepted":`))
		if !found {
			return 0
		}
		end := bytes.IndexFunc(after, func(c rune) bool { return c < '0' || c > '9' })
		n, _ := strconv.Atoi(string(after[:max(end, 0)]))
		return n
	}
	return 0
}
