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

	"github.com/sendquota/sendquota/internal/duration"
)

// Forever is the upper bound of a duration without a maximum.
const Forever = time.Duration(math.MaxInt64)

// String adds a text. The check, which may be nil, returns an error message or "".
func (t *Table) String(name, preset, meaning string, to *string, check func(string) string) {
	t.add(name, preset, meaning, func(p Node) { *to, _ = p.text(check) })
	t.last().shown(Form{Kind: KindText}, func() any { return *to })
}

// HiddenString adds a text that no error shows, because it may contain a secret.
func (t *Table) HiddenString(name, preset, meaning string, to *string, check func(string) string) {
	t.add(name, preset, meaning, func(p Node) {
		p.hidden = true
		*to, _ = p.text(check)
	})
	t.last().shown(Form{Kind: KindText}, func() any { return *to })
}

// text returns the string at this place, if it has no error.
func (p Node) text(check func(string) string) (string, bool) {
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

// scalar adds a setting that is read from one node. If read reports false, the value is an error: it must be mustBe.
func scalar[T any](t *Table, name, preset, meaning string, to *T, mustBe string, read func(ast.Node) (T, bool)) {
	t.add(name, preset, meaning, func(p Node) {
		if value, ok := read(p.node); ok {
			*to = value
		} else {
			p.BadValue("must be %s", mustBe)
		}
	})
}

// OneOf adds a setting with one of a few words.
func (t *Table) OneOf(name, preset, meaning string, to *string, words ...string) {
	t.add(name, preset, meaning, func(p Node) {
		s, ok := textOf(p.node)
		if ok && slices.Contains(words, s) {
			*to = s
			return
		}
		p.BadValue("must be one of %s%s", strings.Join(words, ", "), didYouMean(s, words))
	})
	t.last().shown(Form{Kind: KindWord, Words: words}, func() any { return *to })
}

// Level adds a log level: debug, info, warn or error.
func (t *Table) Level(name, preset, meaning string, to *slog.Level) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	scalar(t, name, preset, meaning, to, "one of debug, info, warn, error", func(n ast.Node) (slog.Level, bool) {
		s, _ := textOf(n)
		level, ok := levels[s]
		return level, ok
	})
}

// Prefixes adds a list of networks and addresses.
func (t *Table) Prefixes(name, preset, meaning string, to *[]netip.Prefix) {
	t.add(name, preset, meaning, func(p Node) {
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

// parsePrefix parses a network, or an address as a network of one address.
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
	scalar(t, name, preset, meaning, to, "true or false", func(n ast.Node) (bool, bool) {
		b, ok := n.(*ast.BoolNode)
		return ok && b.Value, ok
	})
	t.last().shown(Form{Kind: KindBoolean}, func() any { return *to })
}

// Int adds a whole number within inclusive bounds.
func (t *Table) Int(name, preset, meaning string, to *int, least, most int) {
	scalar(t, name, preset, meaning, to, fmt.Sprintf("a whole number from %d to %d", least, most), func(n ast.Node) (int, bool) {
		i, ok := wholeNumber(n)
		return i, ok && least <= i && i <= most
	})
	t.last().shown(Form{Kind: KindInteger, Least: least, Most: most}, func() any { return *to })
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

// Duration adds a time span within inclusive bounds.
func (t *Table) Duration(name, preset, meaning string, to *time.Duration, least, most time.Duration) {
	bounds := fmt.Sprintf("from %s to %s", duration.Words(least), duration.Words(most))
	switch {
	case most == Forever && least == 1:
		bounds = "above 0"
	case most == Forever:
		bounds = "of at least " + duration.Words(least)
	}
	scalar(t, name, preset, meaning, to, "a duration "+bounds+", written like 500ms, 90s, 24h or 30d", func(n ast.Node) (time.Duration, bool) {
		s, _ := textOf(n)
		if i, ok := wholeNumber(n); ok && i == 0 {
			s = "0" // needs no unit
		}
		d, err := duration.Parse(s)
		return d, err == nil && least <= d && d <= most
	})
	t.last().shown(Form{Kind: KindDuration}, func() any { return *to })
}
