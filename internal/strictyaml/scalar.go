package strictyaml

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Forever is the upper bound of a duration that has none.
const Forever = time.Duration(math.MaxInt64)

// String adds a text. The check, which may be nil, returns what is wrong with it, or "".
func (t *Table) String(name, preset, meaning string, to *string, check func(string) string) {
	t.add(name, preset, meaning, func(p Place) { *to, _ = p.text(check) })
}

// HiddenString adds a text that no error shows, because somebody may have put a secret into it.
func (t *Table) HiddenString(name, preset, meaning string, to *string, check func(string) string) {
	t.add(name, preset, meaning, func(p Place) {
		p.hidden = true
		*to, _ = p.text(check)
	})
}

// text reads a string; without an error only.
func (p Place) text(check func(string) string) (string, bool) {
	s, ok := textOf(p.node)
	if !ok {
		p.BadValue("must be a string; put it in quotes")
		return "", false
	}
	if check != nil {
		if wrong := check(s); wrong != "" {
			p.BadValue("%s", wrong)
			return "", false
		}
	}
	return s, true
}

// OneOf adds one of a few words.
func (t *Table) OneOf(name, preset, meaning string, to *string, words ...string) {
	t.add(name, preset, meaning, func(p Place) { *to = p.oneOf(words) })
}

func (p Place) oneOf(words []string) string {
	s, ok := textOf(p.node)
	if !ok || !slices.Contains(words, s) {
		p.BadValue("must be one of %s", strings.Join(words, ", "))
		return ""
	}
	return s
}

// Level adds a level of a log: debug, info, warn or error.
func (t *Table) Level(name, preset, meaning string, to *slog.Level) {
	t.add(name, preset, meaning, func(p Place) {
		if word := p.oneOf([]string{"debug", "info", "warn", "error"}); word != "" {
			_ = to.UnmarshalText([]byte(word)) // takes each of the four
		}
	})
}

// Prefixes adds a list of networks and addresses.
func (t *Table) Prefixes(name, preset, meaning string, to *[]netip.Prefix) {
	t.add(name, preset, meaning, func(p Place) {
		sequence, ok := p.node.(*ast.SequenceNode)
		if !ok {
			p.BadValue("must be a list; write [] for none")
			return
		}
		for i := range sequence.Values {
			item := p.Item(i)
			s, _ := textOf(item.node)
			prefix, err := parsePrefix(s)
			if err != nil {
				item.BadValue("must be an address or a network, such as 10.1.2.3, 10.0.0.0/8 or fd00::/8")
				continue
			}
			*to = append(*to, prefix)
		}
	})
}

// parsePrefix takes an address for a network of its own.
func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(s)
	return prefix.Masked(), err
}

// Bool adds true or false.
func (t *Table) Bool(name, preset, meaning string, to *bool) {
	t.add(name, preset, meaning, func(p Place) {
		b, ok := p.node.(*ast.BoolNode)
		if !ok {
			p.BadValue("must be true or false")
			return
		}
		*to = b.Value
	})
}

// Int adds a whole number within bounds, both of which are allowed.
func (t *Table) Int(name, preset, meaning string, to *int, least, most int) {
	t.add(name, preset, meaning, func(p Place) {
		n, ok := wholeNumber(p.node)
		if !ok || n < least || n > most {
			p.BadValue("must be a whole number from %d to %d", least, most)
			return
		}
		*to = n
	})
}

func wholeNumber(n ast.Node) (int, bool) {
	number, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch v := number.Value.(type) {
	case int64:
		return int(v), true
	case uint64:
		return int(v), v <= math.MaxInt
	}
	return 0, false
}

// Duration adds a time span within bounds, both of which are allowed.
func (t *Table) Duration(name, preset, meaning string, to *time.Duration, least, most time.Duration) {
	bounds := fmt.Sprintf("from %s to %s", Short(least), Short(most))
	switch {
	case most == Forever && least == 1:
		bounds = "above 0"
	case most == Forever:
		bounds = "of at least " + Short(least)
	}
	t.add(name, preset, meaning, func(p Place) {
		s, _ := textOf(p.node)
		d, err := time.ParseDuration(s)
		if err != nil || d < least || d > most {
			p.BadValue("must be a duration %s, written like 500ms, 90s or 24h", bounds)
			return
		}
		*to = d
	})
}

// Short writes a duration as a person would: 24h, not 24h0m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
