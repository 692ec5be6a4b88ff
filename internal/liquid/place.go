package liquid

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// place is where in a message a decoder is, as callers know fields.
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

// short is the name of a member in a fault.
func short(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "…"
	}
	return name
}

// literalBefore is the JSON string that ends a text.
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
