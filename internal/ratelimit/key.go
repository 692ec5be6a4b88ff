package ratelimit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// TagOf returns the part of a name that determines its slot in a Redis Cluster: the text between the first { and the
// next }, if it is not empty, or else the whole name.
func TagOf(name string) string {
	if _, rest, ok := strings.Cut(name, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return name
}

// slotOf returns the part of a key that determines its slot in a cluster. Like the rest, it has a fixed size, and does
// not contain the name.
func slotOf(name string) string {
	h := sha256.Sum256([]byte(name))
	return "limit:{" + base64.RawURLEncoding.EncodeToString(h[:16]) + "}:"
}

// keyOf returns the rest of a key. It differs for every rule: with another limit, a subject starts afresh.
func keyOf(r Rule) string {
	b := make([]byte, 0, 128)
	b = append(append(b, r.Limit.program().kind...), 0)
	for _, n := range []int64{int64(r.Limit.Limit), int64(r.Limit.Per), int64(r.Limit.Burst), int64(r.Limit.Precision)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	h := sha256.Sum256(append(b, r.Subject...))
	return base64.RawURLEncoding.EncodeToString(h[:12])
}
