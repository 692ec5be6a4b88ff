package lists

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// maxImportLine is the longest line of an upload, in bytes.
const maxImportLine = 64 << 10

// mostAgain bounds the bytes that are read again, beyond the bytes that were read once, because several lines were not one record. After that, a
// record has one line, until enough was read once.
const mostAgain = 8 << 20

// lineReader reads the lines of a text of any length, in UTF-8, or in UTF-16 with a byte order mark. A record of CSV may span
// several lines.
type lineReader struct {
	in     *bufio.Reader
	back   []byte // text before in, which is read again
	quotes bool   // a line continues within quotation marks
	comma  byte   // separates cells; 0: a comma, a semicolon or a tab
	next   int    // the number of the next line
	buf    []byte

	utf16, returns bool // the encoding; and whether lines end with a carriage return, as in old spreadsheets

	whole func(record []byte) bool // whether several lines are one record; nil: always

	read, again int // bytes
}

// newLineReader returns a reader for the encoding and the line ends of the text.
func newLineReader(in io.Reader, quotes bool) *lineReader {
	r := bufio.NewReaderSize(in, maxImportLine)
	mark, _ := r.Peek(3)
	utf16 := bytes.HasPrefix(mark, []byte("\xFF\xFE")) || bytes.HasPrefix(mark, []byte("\xFE\xFF"))
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
	returns := false
	if first, _ := r.Peek(maxImportLine); bytes.IndexByte(first, '\r') >= 0 && bytes.IndexByte(first, '\n') < 0 { // of an old spreadsheet
		r, returns = bufio.NewReaderSize(lineEnds{r}, maxImportLine), true
	}
	return &lineReader{in: r, quotes: quotes, next: 1, utf16: utf16, returns: returns}
}

// line returns the next line or record without its end, the number of its first line, and whether it is too long: then it is not
// complete, and reading continues after its end. If lines look like one record by their quotation marks, but are not,
// it returns only the first one, so that an error in it does not affect the others. The error is io.EOF at the end
// of the text. The line is valid until the next call.
func (l *lineReader) line() (text []byte, number int, long bool, err error) {
	l.buf, number = l.buf[:0], l.next
	cells, first := cellState{start: true, comma: l.comma}, 0 // where the first of several lines ends
	for {
		part, err := l.part()
		last := errors.Is(err, io.EOF)
		if err != nil && (!last || len(part)+len(l.buf) == 0) {
			return nil, number, false, err
		}
		if long = long || len(l.buf)+len(bytes.TrimRight(part, "\r\n")) > maxImportLine; long && first > 0 {
			return l.only(first, part, number), number, false, nil
		}
		if !long {
			l.buf = append(l.buf, part...)
			cells.read(part)
		}
		if !last && !bytes.HasSuffix(part, []byte("\n")) {
			continue
		}
		l.next++
		switch open := l.quotes && !long && cells.open; {
		case open && !last && (first > 0 || l.again <= l.read+mostAgain):
			if first == 0 {
				first = len(l.buf)
			}
			continue
		case first > 0 && (open || l.whole != nil && !l.whole(bytes.TrimRight(l.buf, "\r\n"))):
			return l.only(first, nil, number), number, false, nil
		}
		return bytes.TrimRight(l.buf, "\r\n"), number, long, nil
	}
}

// part reads to the end of a line, or a part of it. The error is io.EOF with the last part of the text.
func (l *lineReader) part() (text []byte, err error) {
	if len(l.back) > 0 {
		end := bytes.IndexByte(l.back, '\n') + 1
		if end == 0 {
			end = len(l.back)
		}
		text, l.back = l.back[:end], l.back[end:]
		return text, nil
	}
	text, err = l.in.ReadSlice('\n')
	if l.read += len(text); errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	return text, err
}

// only returns the first line in the buffer. The others are read again, and then the following text.
func (l *lineReader) only(first int, follows []byte, number int) []byte {
	l.back = bytes.Join([][]byte{l.buf[first:], follows, l.back}, nil)
	l.again += len(l.back)
	l.next = number + 1
	return bytes.TrimRight(l.buf[:first], "\r\n")
}

// cellState is the position of a reader in the cells of a line of CSV.
type cellState struct {
	comma byte // separates cells; 0: any separator
	start bool // of a cell
	open  bool // a quotation mark is open
	ended bool // a quotation mark was just closed, or is the first of two
}

func (c *cellState) read(text []byte) {
	for _, b := range text {
		switch {
		case b == '"' && (c.open || c.ended):
			c.open, c.ended = !c.open, c.open
		case b == '"' && c.start:
			c.open, c.start = true, false
		case c.open:
		case b == '\n' || b == c.comma || c.comma == 0 && (b == ',' || b == ';' || b == '\t'):
			c.start, c.ended = true, false
		case b != ' ':
			c.start, c.ended = false, false
		}
	}
}
