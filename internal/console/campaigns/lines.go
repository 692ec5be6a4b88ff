package campaigns

import (
	"bytes"
	"errors"
	"strings"

	"github.com/sendquota/sendquota/internal/httpapi/lists"
)

// badLines are lines of a file that cannot be used, as they are in it, by their numbers: those whose faults the API tells.
type badLines map[int64]string

// longestBad bounds the text of a bad line, and mostBad the text of all bad lines, in bytes. The page has them to offer them as a file.
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
		b[int64(line)] = "(row too long to show here)"
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

// validSample returns an error if the beginning of a file is not in UTF-8. Its last line can be cut off.
func validSample(sample []byte) error {
	if end := bytes.LastIndexAny(sample, "\r\n"); len(sample) == sampleBytes && end >= 0 {
		sample = sample[:end]
	}
	file, err := lists.OpenCSV(bytes.NewReader(sample))
	for err == nil {
		_, _, err = file.Next()
	}
	if wrong, ok := errors.AsType[*lists.EncodingError](err); ok {
		return wrong
	}
	return nil
}
