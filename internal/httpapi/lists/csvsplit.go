package lists

import (
	"fmt"
	"strings"
)

// separator returns the separator of the columns: the most frequent one in the header outside quotation marks.
func separator(header string) byte {
	best, most, quoted := byte(','), 0, false
	for _, c := range []byte{',', ';', '\t'} {
		n := 0
		for i := range len(header) {
			switch header[i] {
			case '"':
				quoted = !quoted
			case c:
				if !quoted {
					n++
				}
			}
		}
		if quoted = false; n > most {
			best, most = c, n
		}
	}
	return best
}

// splitRecord splits a line into its cells. A quoted cell may have any characters, and quotation marks doubled.
func splitRecord(line string, comma byte) (cells []string, err error) {
	for {
		trimmed := strings.TrimLeft(line, " ")
		if !strings.HasPrefix(trimmed, `"`) {
			cell, rest, more := strings.Cut(line, string(comma))
			if cells = append(cells, cell); !more {
				return cells, nil
			}
			line = rest
			continue
		}
		var cell strings.Builder
		for line = trimmed[1:]; ; {
			end := strings.IndexByte(line, '"')
			if end < 0 {
				return nil, errQuote
			}
			cell.WriteString(line[:end])
			if line = line[end+1:]; !strings.HasPrefix(line, `"`) {
				break
			}
			cell.WriteByte('"')
			line = line[1:]
		}
		cells = append(cells, cell.String())
		line = strings.TrimLeft(line, " ")
		switch {
		case line == "":
			return cells, nil
		case line[0] != comma:
			return nil, errBehind
		}
		line = line[1:]
	}
}

// unevenCells returns the error of a line with more or fewer cells than the header.
func unevenCells(line, header int) string {
	if line == 1 {
		return fmt.Sprintf("has 1 cell, and the header %d", header)
	}
	return fmt.Sprintf("has %d cells, and the header %d", line, header)
}
