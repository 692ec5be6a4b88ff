package ratelimit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// TagOf is the part of a name that Redis Cluster places it by: what is between the first { and the next }, if there
// is anything, and else all of it.
func TagOf(name string) string {
	if _, rest, ok := strings.Cut(name, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return name
}

// slots are the places of an owner's tags in a cluster. They remember the last.
type slots struct{ prefix, owner, tag, slot string }

func (s *slots) of(tag string) string {
	if s.slot == "" || s.tag != tag {
		s.tag, s.slot = tag, s.prefix+slotOf(s.owner+tag)
	}
	return s.slot
}

// slotOf is the part of a key that places it in a cluster. Like the rest it is of fixed size and names nobody.
func slotOf(name string) string {
	h := sha256.Sum256([]byte(name))
	return "limit:{" + base64.RawURLEncoding.EncodeToString(h[:16]) + "}:"
}

// keyOf tells the rules of a tag apart, by everything in them: with another limit a subject begins anew.
func keyOf(r Rule) string {
	b := make([]byte, 0, 128)
	b = append(append(b, r.Limit.kind()...), 0)
	for _, n := range []int64{int64(r.Limit.Limit), int64(r.Limit.Per), int64(r.Limit.Burst), int64(r.Limit.Precision)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	h := sha256.Sum256(append(b, r.Subject...))
	return base64.RawURLEncoding.EncodeToString(h[:12])
}

// kind tells the forms of states apart, also from those of earlier versions.
func (l Limit) kind() string {
	switch {
	case l.Aligned:
		return "aligned_window"
	case l.Refill == Interval:
		return "interval_bucket"
	case l.Algorithm == SlidingLog:
		return "log"
	case l.Algorithm == SlidingWindow:
		return "steps"
	}
	return string(l.Algorithm)
}
