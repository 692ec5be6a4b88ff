package liquid

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// place returns a decoder's position in a message, as a field name that callers know.
func place(d *jsontext.Decoder) string {
	var field strings.Builder
	field.WriteString("message")
	depth := 0
	for token := range d.StackPointer().Tokens() {
		depth++
		if kind, _ := d.StackIndex(depth); kind == '[' {
			n, _ := strconv.Atoi(token)
			fmt.Fprintf(&field, "[%d]", n)
			continue
		}
		field.WriteString("." + short(token))
	}
	return field.String()
}

// short returns the name of a member for an error.
func short(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "…"
	}
	return name
}

// literalBefore returns the JSON string at the end of a text.
func literalBefore(text []byte) []byte {
	for at := len(text) - 2; ; at-- {
		if text[at] != '"' {
			continue
		}
		slashes := 0
		for at-slashes > 0 && text[at-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return text[at:]
		}
	}
}

func tooLong(size int) string {
	return fmt.Sprintf("must have templates of at most %d bytes in all, has %d", MaxTemplate, size)
}
