package sms

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// table calls each with every text of the table and its size.
func table(t testing.TB, each func(text string, want Size)) {
	t.Helper()
	f, err := os.Open("testdata/table.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for lines := bufio.NewScanner(f); lines.Scan(); rows++ {
		var row []any
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("line %d: %v", rows+1, err)
		}
		var text strings.Builder
		for i := 3; i < len(row); i += 2 {
			text.WriteString(strings.Repeat(row[i].(string), int(row[i+1].(float64))))
		}
		each(text.String(), Size{Encoding(row[0].(string)), int(row[1].(float64)), int(row[2].(float64))})
	}
	if rows < 2000 {
		t.Errorf("the table has only %d texts", rows)
	}
}

// TestMeasure_Table compares the sizes with those of Twilio's calculator.
func TestMeasure_Table(t *testing.T) {
	t.Parallel()
	wrong := 0
	table(t, func(text string, want Size) {
		if got := Measure(text); got != want && wrong < 20 {
			wrong++
			t.Errorf("%+q: %+v, want %+v", text, got, want)
		}
	})
}

// TestCause_Table checks that exactly the texts that are sent as UCS-2 have a cause, which is a part of them.
func TestCause_Table(t *testing.T) {
	t.Parallel()
	table(t, func(text string, want Size) {
		cause := Cause(text)
		if (cause != "") != (want.Encoding == UCS2) || !strings.Contains(text, cause) || cause != "" && Measure(cause).Encoding != UCS2 {
			t.Errorf("%+q: the cause is %+q", text, cause)
		}
	})
}

// TestCause checks which part of a text is shown as the reason for its encoding.
func TestCause(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                 "",
		"Hello {name} €":   "",
		"Sale 😀 now 🎉":     "😀",
		"Fam 👨‍👩‍👧 x":      "👨‍👩‍👧",
		"cafe\u0301":       "e\u0301",
		"It’s":             "’",
		"a\tb":             "\t",
		"a\x80b":           "\x80",
		"Grüße\r\nfrom 🇩🇰": "🇩🇰",
	} {
		if got := Cause(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// characters are what random texts consist of.
var characters = rapid.OneOf(
	rapid.SampledFrom([]rune("abcXYZ 0159@£$\n\r_ÄΩ")), rapid.SampledFrom([]rune("\f[\\]^{|}~€")), rapid.SampledFrom([]rune("中ç`’\t\u200b\u0301\u200d\ufe0f🇩🇰👍👧🏽❤각ᄀ\u1161\u11a8\u0600")),
	rapid.Rune(),
)

// TestMeasure_Properties checks what holds for every text, without another way to count.
func TestMeasure_Properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(characters, 0, rapid.IntRange(0, 500).Draw(t, "length")).Draw(t, "text"))
		got := Measure(text)
		septets, units, all := 0, len(utf16.Encode([]rune(text))), true
		for _, r := range text {
			septets += septetsOf(r)
			all = all && septetsOf(r) > 0
		}
		switch {
		case all != (got.Encoding == GSM7):
			t.Fatalf("%+q is sent in %s", text, got.Encoding)
		case all && got.Characters != septets:
			t.Fatalf("%+q has %d characters, want %d septets", text, got.Characters, septets)
		case all && !fits(got.Segments, septets, septetsAlone, septetsWithHeader, 1):
			t.Fatalf("%+q of %d septets has %d segments", text, septets, got.Segments)
		case !all && (got.Characters > utf8.RuneCountInString(text) || got.Characters < 1):
			t.Fatalf("%+q has %d characters", text, got.Characters)
		case !all && got.Segments < (units+unitsAlone-1)/unitsAlone:
			t.Fatalf("%+q of %d units has %d segments", text, units, got.Segments)
		case got.Segments > 1 && got.Characters == 0:
			t.Fatalf("%+q: %+v", text, got)
		}
		if more := Measure(text + "a"); more.Encoding == got.Encoding && (more.Segments < got.Segments || more.Segments > got.Segments+1) {
			t.Fatalf("%+q has %d segments, and with another letter %d", text, got.Segments, more.Segments)
		}
	})
}

// fits reports whether a number of segments can hold a size, if each full one may lose some of its end.
func fits(segments, size, alone, withHeader, lost int) bool {
	if size <= alone {
		return segments == 1
	}
	return size <= segments*withHeader && size > (segments-1)*(withHeader-lost)
}

// TestMeasure_Graphemes checks that the graphemes of a text are its parts.
func TestMeasure_Graphemes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(characters, 1, 100).Draw(t, "text"))
		units, rest := 0, text
		for rest != "" {
			n, of := nextGrapheme(rest)
			if n < 1 || n > len(rest) || !utf8.ValidString(rest[:n]) {
				t.Fatalf("a grapheme of %+q has %d bytes", rest, n)
			}
			units, rest = units+of, rest[n:]
		}
		if want := len(utf16.Encode([]rune(text))); units != want {
			t.Fatalf("%+q has %d units, want %d", text, units, want)
		}
	})
}

func BenchmarkMeasure(b *testing.B) {
	for name, text := range map[string]string{
		"GSM-7, 160": strings.Repeat("Hello {you}, ", 12) + "bye!",
		"UCS-2, 160": strings.Repeat("Grüße, ", 22) + "Anna 😀",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Measure(text)
			}
		})
	}
}

// FuzzMeasure checks that no text is refused.
func FuzzMeasure(f *testing.F) {
	f.Add("Hello \xff😀\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Measure(text); got.Segments < 1 || got.Characters < 0 || (got.Encoding == UCS2) != (Cause(text) != "") {
			t.Errorf("%+q: %+v, because of %+q", text, got, Cause(text))
		}
	})
}
