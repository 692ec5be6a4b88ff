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

// utf16Reader turns UTF-16 into UTF-8.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	left  []byte // that was turned, and not read
	held  uint16 // a unit that was read behind half a character; 0: none
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

// fill turns some more.
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
			if whole == utf8.RuneError { // half a character: no line with it is valid
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

// lineEnds turns the line ends of a text that has carriage returns alone into those that others have.
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

// A caller who sends a long body gets so much time at first, and so much more as it has sent, at a pace that is not the network's
// fault alone.
const (
	FirstBodyTime = 30 * time.Second
	BytesASecond  = 16 << 10
)

// patientReader reads a body of any length. It bounds the time that it waits for it, not the time in between.
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
	_ = p.control.SetReadDeadline(began.Add(allowed)) // without deadlines there is no server, but a test
	n, err := p.body.Read(b)
	p.read, p.waited = p.read+int64(n), p.waited+time.Since(began)
	return n, err
}

// AnswerTime is the time to write the answer after a long upload.
const AnswerTime = time.Minute
