package frame

import (
	"strings"
	"testing"
)

// TestSegmentWords checks what a person reads about the size of a text.
func TestSegmentWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Hello":                        "1 segment, GSM-7",
		strings.Repeat("a", 161):       "2 segments, GSM-7",
		strings.Repeat("a", 159) + "😀": "3 segments, UCS-2, because of “😀”",
		"It’s":                         "1 segment, UCS-2, because of “’”",
		"a\u200bb":                     "1 segment, UCS-2, because of an invisible character, U+200B",
		"a\tb":                         "1 segment, UCS-2, because of an invisible character, U+0009",
		"cafe\u0301":                   "1 segment, UCS-2, because of “e\u0301”",
	} {
		if got := SegmentWords(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := BodyWords(map[string]any{"title": "😀", "body": "Hi"}); got != "1 segment, GSM-7" {
		t.Error(got)
	}
}
