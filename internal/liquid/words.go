package liquid

import (
	"regexp"
	"strings"
)

// word is a word of an expression: a name, a number, a text, or a mark.
type word struct {
	kind byte // 'a': a name, '0': a number, '"': a text, '=': a comparison, 'e': the end; else the mark itself, and '~' is ..
	text string
}

var wordShape = regexp.MustCompile(`^(?:([A-Za-z_][A-Za-z0-9_-]*\??)|(-?[0-9]+(?:\.[0-9]+)?)|("[^"]*"|'[^']*')|(==|!=|<>|<=|>=|<|>)|(\.\.)|([.,:|()\[\]]))`)

// kinds are the kinds of the groups of wordShape.
const kinds = `a0"=~`

// words reads an expression up to its end.
func words(text string) (all []word, ok bool) {
	for {
		text = strings.TrimLeft(text, spaces)
		if text == "" {
			return append(all, word{kind: 'e'}), true
		}
		at := wordShape.FindStringSubmatchIndex(text)
		if at == nil {
			return nil, false
		}
		w := word{text: text[:at[1]]}
		for i := range len(kinds) + 1 {
			if at[2*i+2] < 0 {
				continue
			}
			if i < len(kinds) {
				w.kind = kinds[i]
			} else {
				w.kind = w.text[0]
			}
		}
		text = text[at[1]:]
		switch {
		case w.kind == '"':
			w.text = w.text[1 : len(w.text)-1]
		case w.kind == '0' && text != "" && (text[0] == '_' || text[0]|0x20 >= 'a' && text[0]|0x20 <= 'z'):
			return nil, false // 2nd
		case w.kind == 'a' && w.text == "contains":
			w.kind = '='
		}
		all = append(all, w)
	}
}
