package httpapi

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// maxImportLine is how many bytes a line of an import may have.
const maxImportLine = 64 << 10

// mostMended is after how many quotation marks that are not closed the lines behind them are read again. Each costs a copy of as
// much as a line may have.
const mostMended = 100

// lineReader reads the lines of a text of any length, in UTF-8, or in UTF-16 with a byte order mark.
type lineReader struct {
	in     *bufio.Reader
	quotes bool // a line goes on within quotation marks
	next   int  // the number of the line that comes next
	buf    []byte
	mended int
}

// newLineReader looks at the beginning of the text.
func newLineReader(in io.Reader, quotes bool) *lineReader {
	r := bufio.NewReaderSize(in, maxImportLine)
	mark, _ := r.Peek(3)
	switch {
	case bytes.HasPrefix(mark, []byte("\xEF\xBB\xBF")):
		_, _ = r.Discard(3)
	case bytes.HasPrefix(mark, []byte("\xFF\xFE")):
		_, _ = r.Discard(2)
		r = bufio.NewReaderSize(&utf16Reader{in: r, order: binary.LittleEndian}, maxImportLine)
	case bytes.HasPrefix(mark, []byte("\xFE\xFF")):
		_, _ = r.Discard(2)
		r = bufio.NewReaderSize(&utf16Reader{in: r, order: binary.BigEndian}, maxImportLine)
	}
	return &lineReader{in: r, quotes: quotes, next: 1}
}

// line returns the next line without its end, the number of its beginning, and whether it is too long: then it is not whole, and
// what follows is read from behind its end. The error is io.EOF at the end of the text. The line is valid until the next one.
func (l *lineReader) line() (text []byte, number int, long bool, err error) {
	l.buf, number = l.buf[:0], l.next
	cells := cellState{start: true}
	for {
		part, err := l.in.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !full && (!errors.Is(err, io.EOF) || len(part)+len(l.buf) == 0) {
			return nil, number, false, err
		}
		over, before := len(l.buf)+len(part) > maxImportLine, cells.open
		if cells.read(part); l.quotes && (over && before || cells.open && errors.Is(err, io.EOF)) && l.mend(part) { // the first line alone is at fault
			l.next = number + 1
			return bytes.TrimRight(l.buf, "\r\n"), number, false, nil
		}
		if long = long || over; !long {
			l.buf = append(l.buf, part...)
		}
		if full {
			continue
		}
		l.next++
		if l.quotes && !long && cells.open && err == nil {
			continue
		}
		return bytes.TrimRight(l.buf, "\r\n"), number, long, nil
	}
}

// mend leaves the first line in the buffer, if there are more, and has the others read again, with what follows them.
func (l *lineReader) mend(follows []byte) bool {
	end := bytes.IndexByte(l.buf, '\n') + 1
	if end == 0 || l.mended == mostMended {
		return false
	}
	l.mended++
	again := bytes.Clone(append(l.buf[end:len(l.buf):len(l.buf)], follows...))
	l.in, l.buf = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(again), l.in), maxImportLine), l.buf[:end]
	return true
}

// cellState is where in the cells of a line of CSV a reader is.
type cellState struct {
	start bool // of a cell
	open  bool // a quotation mark is
	ended bool // one was closed just now, or is the first of two
}

func (c *cellState) read(text []byte) {
	for _, b := range text {
		switch {
		case b == '"' && (c.open || c.ended):
			c.open, c.ended = !c.open, c.open
		case b == '"' && c.start:
			c.open, c.start = true, false
		case c.open:
		case b == ',' || b == ';' || b == '\t' || b == '\n':
			c.start, c.ended = true, false
		case b != ' ':
			c.start, c.ended = false, false
		}
	}
}

// utf16Reader turns UTF-16 into UTF-8.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	left  []byte // that was turned, and not read
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
			second, ok := u.unit()
			if !ok {
				second = utf8.RuneError
			}
			c = utf16.DecodeRune(c, second)
		}
		u.left = utf8.AppendRune(u.left, c)
	}
}

// unit reads two bytes.
func (u *utf16Reader) unit() (rune, bool) {
	var two [2]byte
	if _, u.err = io.ReadFull(u.in, two[:]); u.err != nil {
		if errors.Is(u.err, io.ErrUnexpectedEOF) {
			u.err = io.EOF
		}
		return 0, false
	}
	return rune(u.order.Uint16(two[:])), true
}

// A caller who sends a long body gets so much time at first, and so much more as it has sent, at a pace that is not the network's
// fault alone.
const (
	firstBodyTime = 30 * time.Second
	bytesASecond  = 16 << 10
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
	allowed := firstBodyTime + time.Duration(p.read/bytesASecond)*time.Second - p.waited
	_ = p.control.SetReadDeadline(began.Add(allowed)) // without deadlines there is no server, but a test
	n, err := p.body.Read(b)
	p.read, p.waited = p.read+int64(n), p.waited+time.Since(began)
	return n, err
}
