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

// slotOf is the part of a key that places it in a cluster. Like the rest it is of fixed size, and does not contain the
// name.
func slotOf(name string) string {
	h := sha256.Sum256([]byte(name))
	return "limit:{" + base64.RawURLEncoding.EncodeToString(h[:16]) + "}:"
}

// keyOf is the rest of a key, another one for every rule: with another limit a subject begins anew.
func keyOf(r Rule) string {
	b := make([]byte, 0, 128)
	b = append(append(b, r.Limit.program().kind...), 0)
	for _, n := range []int64{int64(r.Limit.Limit), int64(r.Limit.Per), int64(r.Limit.Burst), int64(r.Limit.Precision)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	h := sha256.Sum256(append(b, r.Subject...))
	return base64.RawURLEncoding.EncodeToString(h[:12])
}
