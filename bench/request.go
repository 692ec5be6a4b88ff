package main

import (
	"bytes"
	"fmt"
	"strings"
)

// placeholder stands in a request where the number of a recipient belongs. It
// has as many digits as every number.
const placeholder = "0000000000"

// request is the text of an HTTP request, made once. Only the numbers of its
// recipients change from one sending to the next, so that the load costs the
// machine little.
type request struct {
	text  []byte
	spots []int // where the numbers stand
}

func newRequest(method, path, key, body string) *request {
	r := &request{text: fmt.Appendf(nil,
		"%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, key, len(body), body)}
	for at := 0; ; {
		next := bytes.Index(r.text[at:], []byte(placeholder))
		if next < 0 {
			return r
		}
		r.spots = append(r.spots, at+next)
		at += next + len(placeholder)
	}
}

// number fills in consecutive numbers of recipients, from first on.
func (r *request) number(first int64) {
	for i, at := range r.spots {
		n := first + int64(i)
		for digit := at + len(placeholder) - 1; digit >= at; digit-- {
			r.text[digit] = byte('0' + n%10)
			n /= 10
		}
	}
}

// copy returns a request of its own for another connection.
func (r *request) copy() *request {
	return &request{text: bytes.Clone(r.text), spots: r.spots}
}

// pushBody is one push for one recipient. Without a time it is due at once.
func pushBody(sendAt string) string {
	when := ""
	if sendAt != "" {
		when = fmt.Sprintf(`"send_at":%q,`, sendAt)
	}
	return `{"recipient":"user-` + placeholder + `","channel":"push","category":"marketing",` + when +
		`"message":{"title":"Winter sale","body":"Everything must go, until Sunday.","data":{"campaign":"winter","page":"/sale"}}}`
}

// batchBody is many pushes, each for another recipient.
func batchBody(pushes int, sendAt string) string {
	return `{"pushes":[` + strings.Repeat(pushBody(sendAt)+",", pushes-1) + pushBody(sendAt) + `]}`
}
