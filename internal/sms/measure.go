package sms

import "strings"

// Encoding is the way in which the characters of a text are sent.
type Encoding string

// The encodings.
const (
	GSM7 Encoding = "GSM-7"
	UCS2 Encoding = "UCS-2"
)

// Size is the size of a text message.
type Size struct {
	Encoding Encoding

	// Characters counts septets in GSM-7, where a character of the extension table counts twice. In UCS-2 it counts graphemes.
	Characters int

	// Segments is at least 1.
	Segments int
}

// The sizes of a segment in septets, or in units of UTF-16: of the only segment of a text, and of one with a header.
const (
	septetsAlone, septetsWithHeader = 160, 153
	unitsAlone, unitsWithHeader     = 70, 67
)

// Measure returns the size of a text. A byte that is not UTF-8 counts as U+FFFD.
func Measure(text string) Size {
	m := meter{alone: septetsAlone, withHeader: septetsWithHeader}
	for _, r := range text {
		septets := septetsOf(r)
		if septets == 0 {
			return measureUCS2(text)
		}
		m.add(septets)
	}
	return Size{GSM7, m.total, m.segments + 1}
}

// measureUCS2 returns the size of a text that is sent as UCS-2. The two characters of a line break may be in two segments.
func measureUCS2(text string) Size {
	m := meter{alone: unitsAlone, withHeader: unitsWithHeader}
	graphemes := 0
	for len(text) > 0 {
		n, units := nextGrapheme(text)
		if text[:n] == "\r\n" {
			n, units = 1, 1
		}
		graphemes++
		m.add(units)
		text = text[n:]
	}
	return Size{UCS2, graphemes, m.segments + 1}
}

// Cause returns the first grapheme that cannot be sent in GSM-7; empty: there is none.
func Cause(text string) string {
	bad := strings.IndexFunc(text, func(r rune) bool { return septetsOf(r) == 0 })
	for from := 0; bad >= 0; {
		n, _ := nextGrapheme(text[from:])
		if from+n > bad {
			return text[from : from+n]
		}
		from += n
	}
	return ""
}

// meter divides a text into segments.
type meter struct {
	alone, withHeader int // sizes of a segment
	total             int
	segments          int // that are full, apart from the last one
	used              int // of the last one
	kept              int // of the first segment: what still fits beside a header
}

// add adds a character or a grapheme, which stays in one segment. The first segment gets its header when a second one begins:
// what no longer fits there begins the second one, and so does the new grapheme, even if both are too large for it.
func (m *meter) add(size int) {
	limit := m.withHeader
	if m.segments == 0 {
		limit = m.alone
	}
	m.total += size
	if m.used+size <= limit {
		if m.used += size; m.segments == 0 && m.used <= m.withHeader {
			m.kept = m.used
		}
		return
	}
	over := 0
	if m.segments == 0 {
		over = m.used - m.kept
	}
	m.segments++
	m.used = over + size
}
