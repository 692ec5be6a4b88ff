package frame

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/sms"
)

// SegmentWords describes the size of a text message in words, such as: 3 segments, UCS-2, because of “😀”. A character that
// cannot be seen is named by its number.
func SegmentWords(text string) string {
	size := sms.Measure(text)
	words := Segments(size.Segments) + ", " + string(size.Encoding)
	if cause := sms.Cause(text); cause != "" {
		words += ", because of " + visible(cause)
	}
	return words
}

// Segments is a number of segments in words.
func Segments(n any) string {
	if text := Number(n); text != "1" {
		return text + " segments"
	}
	return "1 segment"
}

// BodyWords describes the size of a message's text: see [SegmentWords].
func BodyWords(message map[string]any) string {
	text, _ := message["body"].(string)
	return SegmentWords(text)
}

// visible quotes a character, or names it if it leaves no mark.
func visible(grapheme string) string {
	first, _ := utf8.DecodeRuneInString(grapheme)
	if !strings.ContainsFunc(grapheme, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.IsMark(r) }) {
		return fmt.Sprintf("an invisible character, U+%04X", first)
	}
	return "“" + grapheme + "”"
}
