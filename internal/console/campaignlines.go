package console

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/httpapi"
)

// badLines are lines of a file that can not be used, as they are in it, by their numbers: those whose faults the API tells.
type badLines map[int64]string

// longestBad is how much is kept of a bad line, and mostBad of all of them: the page has them for the file that can be made of them.
const (
	longestBad = 4 << 10
	mostBad    = 192 << 10
)

// take keeps a line.
func (b badLines) take(line int, text []byte) {
	size := 0
	for _, one := range b {
		size += len(one)
	}
	if size+min(len(text), longestBad) > mostBad {
		b[int64(line)] = "(there is no room for this line here)"
		return
	}
	kept := string(text)
	if len(text) > longestBad {
		kept = strings.ToValidUTF8(string(text[:longestBad]), "") + " … (cut short)"
	}
	b[int64(line)] = kept
}

// Of is the text of a line.
func (b badLines) Of(line int64) string { return b[line] }

// utf8Reader reads a text that has to be in UTF-8 as a whole: letters of another encoding would be lost, or whole lines with them.
type utf8Reader struct {
	in    io.Reader
	line  int    // that is read
	rest  []byte // the begin of a letter
	wrong error
}

func (u *utf8Reader) Read(to []byte) (int, error) {
	if u.wrong != nil {
		return 0, u.wrong
	}
	n, err := u.in.Read(to)
	text := append(u.rest, to[:n]...)
	whole := wholeLetters(text)
	if err == io.EOF {
		whole = len(text)
	}
	if !utf8.Valid(text[:whole]) {
		for len(text) > 0 {
			r, size := utf8.DecodeRune(text)
			if r == utf8.RuneError && size == 1 {
				break
			}
			if text = text[size:]; r == '\n' {
				u.line++
			}
		}
		u.wrong = fmt.Errorf("line %d is not in UTF-8, so that letters such as ä or é would be lost: save the list as “CSV UTF-8”, and choose it again", u.line)
		return 0, u.wrong
	}
	u.line += bytes.Count(text[:whole], []byte("\n"))
	u.rest = append(u.rest[:0], text[whole:]...)
	return n, err
}

// wholeLetters is how much of a text is whole letters: one may begin at its end.
func wholeLetters(text []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return len(text) - i
			}
			break
		}
	}
	return len(text)
}

// validSample says whether the beginning of a file is in an encoding that can be read. It may end within a letter.
func validSample(sample []byte) error {
	file, err := httpapi.OpenCSV(bytes.NewReader(sample))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(file.Renamed(make([]string, len(file.Columns))))
	if err != nil {
		return nil // half a letter of UTF-16
	}
	if len(sample) == sampleBytes {
		text = text[:wholeLetters(text)]
	}
	u := &utf8Reader{in: bytes.NewReader(text), line: 1}
	_, _ = io.Copy(io.Discard, u)
	return u.wrong
}
