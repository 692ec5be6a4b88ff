package config

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

const forever = time.Duration(math.MaxInt64)

// text reads a string.
func (p place) text() (string, bool) {
	s, ok := textOf(p.node)
	if !ok {
		p.fault("must be a string; put it in quotes")
	}
	return s, ok
}

func anyText(to *string) reader {
	return reader{into: func(p place) { *to, _ = p.text() }}
}

// oneOf reads one of a few words.
func oneOf(to *string, words ...string) reader {
	return reader{into: func(p place) {
		s, ok := textOf(p.node)
		if !ok || !slices.Contains(words, s) {
			p.fault("must be one of %s", strings.Join(words, ", "))
			return
		}
		*to = s
	}}
}

func level(to *slog.Level) reader {
	var word string
	words := oneOf(&word, "debug", "info", "warn", "error")
	return reader{into: func(p place) {
		if words.into(p); word != "" {
			_ = to.UnmarshalText([]byte(word)) // takes each of the four
		}
	}}
}

// nameShape is the shape of the names of rules and channels.
var nameShape = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

func name(to *string) reader {
	return reader{into: func(p place) {
		s, ok := p.text()
		if ok && !nameShape.MatchString(s) {
			p.fault("must be 1 to 64 of a-z, 0-9, - and _")
			return
		}
		*to = s
	}}
}

func address(to *string) reader {
	return reader{into: func(p place) {
		s, ok := p.text()
		if ok && !isAddress(s) {
			p.fault("must be host:port, such as 127.0.0.1:8080 or :8080")
			return
		}
		*to = s
	}}
}

// prefixes reads a list of networks; an address is one of its own.
func prefixes(to *[]netip.Prefix) reader {
	return reader{into: func(p place) {
		sequence, ok := p.node.(*ast.SequenceNode)
		if !ok {
			p.fault("must be a list; write [] for none")
			return
		}
		for i := range sequence.Values {
			item := p.item(i)
			s, _ := textOf(item.node)
			prefix, err := readPrefix(s)
			if err != nil {
				item.fault("must be an address or a network, such as 10.1.2.3, 10.0.0.0/8 or fd00::/8")
				continue
			}
			*to = append(*to, prefix)
		}
	}}
}

func readPrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(s)
	return prefix.Masked(), err
}

func boolean(to *bool) reader {
	return reader{into: func(p place) {
		b, ok := p.node.(*ast.BoolNode)
		if !ok {
			p.fault("must be true or false")
			return
		}
		*to = b.Value
	}}
}

// integer reads a whole number within bounds, both of which are allowed.
func integer(to *int, least, most int) reader {
	return reader{into: func(p place) {
		n, ok := wholeNumber(p.node)
		if !ok || n < least || n > most {
			p.fault("must be a whole number from %d to %d", least, most)
			return
		}
		*to = n
	}}
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

// duration reads a time span within bounds, both of which are allowed.
func duration(to *time.Duration, least, most time.Duration) reader {
	bounds := fmt.Sprintf("from %s to %s", short(least), short(most))
	switch {
	case most == forever && least == 1:
		bounds = "above 0"
	case most == forever:
		bounds = "of at least " + short(least)
	}
	return reader{into: func(p place) {
		s, _ := textOf(p.node)
		d, err := time.ParseDuration(s)
		if err != nil || d < least || d > most {
			p.fault("must be a duration %s, written like 500ms, 90s or 24h", bounds)
			return
		}
		*to = d
	}}
}

// short writes a duration as a person would: 24h, not 24h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// unsupported refuses a key that means something, but not yet.
func unsupported(why string) reader {
	return reader{into: func(p place) { p.refuse("%s", why) }}
}
