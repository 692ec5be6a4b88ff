package liquid

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var textFilters = map[string]filter{
	"append":                 withText(func(text, arg string) string { return text + arg }),
	"base64_decode":          {do: decoded(base64.StdEncoding)},
	"base64_encode":          ofText(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
	"base64_url_safe_decode": {do: decoded(base64.URLEncoding)},
	"base64_url_safe_encode": ofText(func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) }),
	"capitalize":             ofText(capitalize),
	"downcase":               ofText(strings.ToLower),
	"escape":                 markedUp(escape),
	"escape_once":            markedUp(escapeOnce),
	"lstrip":                 ofText(func(s string) string { return strings.TrimLeft(s, spaces) }),
	"newline_to_br":          {do: lineBreaks},
	"prepend":                withText(func(text, arg string) string { return arg + text }),
	"raw":                    markedUp(func(s string) string { return s }),
	"remove":                 {least: 1, most: 1, do: replaced(all)},
	"remove_first":           {least: 1, most: 1, do: replaced(first)},
	"remove_last":            {least: 1, most: 1, do: replaced(last)},
	"replace":                {least: 1, most: 2, do: replaced(all)},
	"replace_first":          {least: 1, most: 2, do: replaced(first)},
	"replace_last":           {least: 2, most: 2, do: replaced(last)},
	"rstrip":                 ofText(func(s string) string { return strings.TrimRight(s, spaces) }),
	"slice":                  {least: 1, most: 2, do: slice},
	"split":                  {least: 1, most: 1, do: split},
	"strip":                  ofText(func(s string) string { return strings.Trim(s, spaces) }),
	"strip_html":             ofText(withoutTags),
	"strip_newlines":         ofText(strings.NewReplacer("\r\n", "", "\n", "").Replace),
	"truncate":               {most: 2, do: truncate},
	"truncatewords":          {most: 2, do: truncateWords},
	"upcase":                 ofText(strings.ToUpper),
	"url_decode":             ofText(urlDecode),
	"url_encode":             ofText(url.QueryEscape),
}

// withText returns a filter of a text with a text argument.
func withText(do func(text, arg string) string) filter {
	return filter{least: 1, most: 1, do: func(_ *machine, v any, args []any) (any, error) { return do(textOf(v), textOf(args[0])), nil }}
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace

// mark matches what escapeOnce escapes: no & that begins an entity with its ;.
var mark = regexp.MustCompile(`&(?:[a-zA-Z]+|#[0-9]+);|[&<>"']`)

func escapeOnce(s string) string {
	return mark.ReplaceAllStringFunc(s, func(found string) string {
		if len(found) > 1 {
			return found
		}
		return escape(found)
	})
}

// Parts of a page that are not text. Each is found by its end, in linear time.
var (
	scripts = regexp.MustCompile(`(?is)<script.*?</script>|<!--.*?-->|<style.*?</style>`)
	anyTag  = regexp.MustCompile(`(?s)<.*?>`)
)

func withoutTags(s string) string {
	return anyTag.ReplaceAllString(scripts.ReplaceAllString(s, ""), "")
}

// capitalize returns a text with the first letter in upper case and the others in lower case.
func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + strings.ToLower(s[n:])
}

// lineBreaks adds <br /> to the lines of a text. If values are escaped, the text is escaped too.
func lineBreaks(m *machine, v any, _ []any) (any, error) {
	text := textOf(v)
	if _, safe := v.(markup); m.html && !safe {
		text = escape(text)
	}
	made, err := grown(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "<br />\n", all)
	return markup(made), err
}

func decoded(by *base64.Encoding) func(*machine, any, []any) (any, error) {
	return func(_ *machine, v any, _ []any) (any, error) {
		text, err := by.DecodeString(textOf(v))
		if err != nil {
			return nil, errors.New("it is not base64")
		}
		return string(text), nil
	}
}

// urlDecode leaves invalid codes unchanged.
func urlDecode(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		if s[i] == '+' {
			out.WriteByte(' ')
		} else {
			out.WriteByte(s[i])
		}
	}
	return out.String()
}

// which selects the occurrences to replace.
type which int

const (
	all which = iota
	first
	last
)

func replaced(w which) func(*machine, any, []any) (any, error) {
	return func(_ *machine, v any, args []any) (any, error) {
		by := ""
		if len(args) == 2 {
			by = textOf(args[1])
		}
		return grown(textOf(v), textOf(args[0]), by, w)
	}
}

// grown replaces in a text, with a bound on the result.
func grown(text, old, by string, w which) (string, error) {
	times := strings.Count(text, old)
	if w != all {
		times = min(times, 1)
	}
	if len(text)+times*(len(by)-len(old)) > maxText {
		return "", errText
	}
	if w == last {
		at := strings.LastIndex(text, old)
		if at < 0 {
			return text, nil
		}
		return text[:at] + by + text[at+len(old):], nil
	}
	if w == first {
		return strings.Replace(text, old, by, 1), nil
	}
	return strings.ReplaceAll(text, old, by), nil
}

// wholeAt returns an argument as a whole number, or a default.
func wholeAt(args []any, i, otherwise int) (int, error) {
	if i >= len(args) {
		return otherwise, nil
	}
	if n, ok := number(args[i]); ok {
		if n, ok := n.(int); ok {
			return n, nil
		}
	}
	return 0, fmt.Errorf("its argument must be a whole number, and is %s", kindOfValue(args[i]))
}

func textAt(args []any, i int, otherwise string) string {
	if i >= len(args) {
		return otherwise
	}
	return textOf(args[i])
}

// slice returns a part of a text or a list. A negative offset counts from the end.
func slice(_ *machine, v any, args []any) (any, error) {
	from, err := wholeAt(args, 0, 0)
	if err != nil {
		return nil, err
	}
	if len(args) == 2 && args[1] == nil {
		args = args[:1]
	}
	n, err := wholeAt(args, 1, 1)
	if err != nil {
		return nil, err
	}
	cut := func(length int) (int, int) {
		if from < 0 {
			from += length
		}
		if from < 0 || from > length || n < 0 {
			return 0, 0
		}
		return from, from + min(n, length-from)
	}
	switch v.(type) {
	case []any, span:
		items := list(v)
		a, b := cut(len(items))
		return items[a:b:b], nil
	}
	runes := []rune(textOf(v))
	a, b := cut(len(runes))
	return string(runes[a:b]), nil
}

// truncate returns a text of at most n characters, including the ellipsis.
func truncate(_ *machine, v any, args []any) (any, error) {
	n, err := wholeAt(args, 0, 50)
	if err != nil {
		return nil, err
	}
	ellipsis, runes := []rune(textAt(args, 1, "...")), []rune(textOf(v))
	if len(runes) <= n {
		return string(runes), nil
	}
	return string(runes[:max(0, n-len(ellipsis))]) + string(ellipsis), nil
}

// truncateWords returns a text of at most n words.
func truncateWords(_ *machine, v any, args []any) (any, error) {
	n, err := wholeAt(args, 0, 15)
	if err != nil {
		return nil, err
	}
	text := textOf(v)
	words := strings.Fields(text)
	if n = max(n, 1); len(words) <= n {
		return text, nil
	}
	return strings.Join(words[:n], " ") + textAt(args, 1, "..."), nil
}

// split returns a text as a list, without empty texts at its end.
func split(_ *machine, v any, args []any) (any, error) {
	text, by := textOf(v), textOf(args[0])
	if strings.Count(text, by) > maxItems {
		return nil, errItems
	}
	var parts []string
	if by == " " {
		parts = strings.Fields(text)
	} else {
		parts = strings.Split(text, by)
	}
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	made := make([]any, len(parts))
	for i, one := range parts {
		made[i] = one
	}
	return made, nil
}

var errNoList = errors.New("its argument is no list")
