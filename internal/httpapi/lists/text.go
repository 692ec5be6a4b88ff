package lists

import (
	"bufio"
	"encoding/binary"
	"io"
	"net/http"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// utf16Reader converts UTF-16 to UTF-8.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	left  []byte // converted, and not read yet
	held  uint16 // a unit that was read after half a character; 0: none
	err   error
}

// Read reads UTF-8.
func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.left) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.fill()
	}
	n := copy(p, u.left)
	u.left = u.left[n:]
	return n, nil
}

// fill converts more text.
func (u *utf16Reader) fill() {
	u.left = u.left[:0]
	for len(u.left) < 4<<10 && u.err == nil {
		c, ok := u.unit()
		if !ok {
			return
		}
		if utf16.IsSurrogate(c) {
			second, _ := u.unit()
			whole := utf16.DecodeRune(c, second)
			if whole == utf8.RuneError { // half a character, which makes its line invalid
				u.left, u.held = append(u.left, 0xFF), uint16(second)
				continue
			}
			c = whole
		}
		u.left = utf8.AppendRune(u.left, c)
	}
}

// unit reads two bytes. A text that ends within them was cut off.
func (u *utf16Reader) unit() (rune, bool) {
	if held := u.held; held != 0 {
		u.held = 0
		return rune(held), true
	}
	var two [2]byte
	if _, u.err = io.ReadFull(u.in, two[:]); u.err != nil {
		return 0, false
	}
	return rune(u.order.Uint16(two[:])), true
}

// lineEnds replaces carriage returns by line feeds.
type lineEnds struct{ in io.Reader }

// Read reads the text.
func (l lineEnds) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i, b := range p[:n] {
		if b == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// The time to send a long body, and the bytes that earn each further second. A slower caller is not slowed by the network
// alone.
const (
	FirstBodyTime = 30 * time.Second
	BytesASecond  = 16 << 10
)

// patientReader reads a body of any length. It bounds the time of waiting for the caller, not the time between reads.
type patientReader struct {
	body    io.Reader
	control *http.ResponseController
	read    int64
	waited  time.Duration
}

// Read reads from the body.
func (p *patientReader) Read(b []byte) (int, error) {
	began := time.Now()
	allowed := FirstBodyTime + time.Duration(p.read/BytesASecond)*time.Second - p.waited
	_ = p.control.SetReadDeadline(began.Add(allowed)) // only tests have no deadlines
	n, err := p.body.Read(b)
	p.read, p.waited = p.read+int64(n), p.waited+time.Since(began)
	return n, err
}

// AnswerTime is the time to write the answer after a long upload.
const AnswerTime = time.Minute
