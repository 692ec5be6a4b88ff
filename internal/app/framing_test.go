package app

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A request with two possible ends is the last of its connection, whatever follows it and
// however it arrives. Other requests are not.
func TestFraming_Ambiguous(t *testing.T) {
	t.Parallel()
	h := setup(t, calm)
	const body, chunked = `{"recipient":"r"}`, "11\r\n" + `{"recipient":"r"}` + "\r\n0\r\n\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	post := func(version, headers, body string) string {
		return strings.Replace(h.post("/v1/pushes", headers), "HTTP/1.1", version, 1) + body
	}
	for name, row := range map[string]struct {
		text   string
		closed bool
		status []int // of the answers before healthy's
	}{
		"a length":                                  {post("HTTP/1.1", length, body), false, []int{422}},
		"chunks":                                    {post("HTTP/1.1", "Transfer-Encoding: chunked\r\n", chunked), false, []int{422}},
		"chunks, in other letters":                  {post("HTTP/1.1", "transfer-ENCODING:CHUNKED\r\n", chunked), false, []int{422}},
		"chunks, a length, chunks":                  {post("HTTP/1.1", "Transfer-Encoding: chunked\r\n", chunked) + post("HTTP/1.1", length, body) + post("HTTP/1.1", "Transfer-Encoding: chunked\r\n", chunked), false, []int{422, 422, 422}},
		"a length in the trailer":                   {post("HTTP/1.1", "Trailer: X\r\nTransfer-Encoding: chunked\r\n", "11\r\n"+body+"\r\n0\r\nX: 5\r\nContent-Length: 5\r\n\r\n"), false, []int{422}},
		"a folded header":                           {post("HTTP/1.1", "X-A: b\r\n c: d\r\n"+length, body), false, []int{422}},
		"HTTP/1.0, kept alive":                      {post("HTTP/1.0", "Connection: keep-alive\r\n"+length, body), false, []int{422}},
		"a body with lines":                         {post("HTTP/1.1", "Content-Length: 26\r\n", "{\n \t\n\n  \"recipient\": \"r\"\n}"), false, []int{422}},
		"a length and chunks":                       {post("HTTP/1.1", length+"Transfer-Encoding: chunked\r\n", chunked), true, []int{422}},
		"chunks and a length":                       {post("HTTP/1.1", "Transfer-Encoding: chunked\r\n"+length, chunked), true, []int{422}},
		"the same after others":                     {post("HTTP/1.1", length, body) + healthy + post("HTTP/1.1", "Transfer-Encoding: chunked\r\n"+length, chunked), true, nil},
		"a length and chunks, in other letters":     {post("HTTP/1.1", "content-LENGTH: 5\r\ntransfer-encoding:chunked\r\n", chunked), true, []int{422}},
		"chunks and a length of nothing":            {post("HTTP/1.1", "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", chunked), true, []int{422}},
		"chunks and a length of nonsense":           {post("HTTP/1.1", "Transfer-Encoding: chunked\r\nContent-Length: nonsense\r\n", chunked), true, []int{400}},
		"chunks and a length in a fold":             {post("HTTP/1.1", "X-A: b\r\n \tContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunked), true, []int{422}},
		"a length and chunks in a fold":             {post("HTTP/1.1", length+"X-A: b\r\n Transfer-Encoding: chunked\r\n", body), true, []int{422}},
		"chunks in a fold":                          {post("HTTP/1.1", "X-A: b\r\n Transfer-Encoding: chunked\r\n", ""), true, []int{400}},
		"chunks, folded":                            {post("HTTP/1.1", "Transfer-Encoding:\r\n chunked\r\n", chunked), true, []int{422}},
		"a length, folded":                          {post("HTTP/1.1", "Content-Length:\r\n "+length[len("Content-Length: "):], body), true, []int{422}},
		"a length, a fold of nothing, chunks":       {post("HTTP/1.1", length+" \r\nTransfer-Encoding: chunked\r\n", chunked), true, []int{422}},
		"two lengths that agree":                    {post("HTTP/1.1", length+length, body), true, []int{422}},
		"two lengths":                               {post("HTTP/1.1", length+"Content-Length: 3\r\n", body), true, []int{400}},
		"two lengths in one":                        {post("HTTP/1.1", "Content-Length: 17, 17\r\n", body), true, []int{400}},
		"a length with a sign":                      {post("HTTP/1.1", "Content-Length: +17\r\n", body), true, []int{400}},
		"no length":                                 {post("HTTP/1.1", "Content-Length:\r\n", ""), true, []int{400}},
		"a space before the colon":                  {post("HTTP/1.1", "Transfer-Encoding : chunked\r\n"+length, chunked), true, []int{400}},
		"two codings":                               {post("HTTP/1.1", "Transfer-Encoding: gzip, chunked\r\n", chunked), true, []int{501}},
		"two codings in two headers":                {post("HTTP/1.1", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", chunked), true, []int{501}},
		"chunks twice":                              {post("HTTP/1.1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunked), true, []int{501}},
		"a coding that is none":                     {post("HTTP/1.1", "Transfer-Encoding: identity\r\n"+length, body), true, []int{501}},
		"chunks behind a vertical tab":              {post("HTTP/1.1", "Transfer-Encoding: \vchunked\r\n"+length, body), true, []int{400}},
		"HTTP/1.0 with chunks":                      {post("HTTP/1.0", "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n", ""), true, []int{400}},
		"HTTP/1.0 with a length and chunks":         {post("HTTP/1.0", "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n"+length, body), true, []int{422}},
		"a bare line feed":                          {post("HTTP/1.1", "X-A: b\nTransfer-Encoding: chunked\n"+length, chunked), true, []int{422}},
		"a bare carriage return":                    {post("HTTP/1.1", "X-A: b\rTransfer-Encoding: chunked\r\n"+length, body), true, []int{400}},
		"GET with a length and chunks":              {"GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true, []int{200}},
		"no path, with a length and chunks":         {"POST /nothing HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true, []int{404}},
		"a length and chunks behind many spaces":    {post("HTTP/1.1", length+"X: y\r\n"+strings.Repeat(" ", 500)+"Transfer-Encoding: chunked\r\n", body), true, []int{422}},
		"a length and chunks, and much between":     {post("HTTP/1.1", length+"X: "+strings.Repeat("y", 9000)+"\r\nTransfer-Encoding: chunked\r\n", chunked), true, []int{422}},
		"a header whose name only begins like that": {post("HTTP/1.1", "Content-Length-X: 5\r\nTransfer-Encodings: chunked\r\n"+length, body), false, []int{422}},
	} {
		for _, piece := range []int{1 << 20, 7} {
			t.Run(fmt.Sprintf("%s, %d", name, piece), func(t *testing.T) {
				t.Parallel()
				c := (&bundle{t: t, addr: h.addr}).dial("")
				go func() {
					for text := row.text + healthy; text != ""; {
						n := min(piece, len(text))
						if _, err := io.WriteString(c, text[:n]); err != nil {
							return // it may be closed before
						}
						text = text[n:]
					}
				}()
				var got []int
				last := false
				for {
					res, err := http.ReadResponse(c.r, nil)
					if err != nil {
						break
					}
					_, _ = io.Copy(io.Discard, res.Body)
					got, last = append(got, res.StatusCode), res.Close
					if !row.closed && len(got) == len(row.status)+1 {
						break
					}
				}
				switch {
				case row.closed && row.status == nil: // how many come before depends on what was read at once
					if !last || len(got) == 0 || len(got) > 3 {
						t.Errorf("answers %v, closed: %t", got, last)
					}
				case row.closed:
					if !last || fmt.Sprint(got) != fmt.Sprint(row.status) {
						t.Errorf("answers %v, closed: %t, want %v", got, last, row.status)
					}
				case last || fmt.Sprint(got) != fmt.Sprint(append(row.status, 200)):
					t.Errorf("answers %v, closed: %t, want %v", got, last, append(row.status, 200))
				}
			})
		}
	}
}

func BenchmarkFraming(b *testing.B) {
	head := []byte("POST /v1/pushes HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: bench/1.0\r\nAccept: application/json\r\nAuthorization: Bearer sq_0123456789012345678901234567890123456789012\r\n" +
		"Content-Type: application/json\r\nContent-Length: 120\r\nIdempotency-Key: 0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01\r\n\r\n")
	var f framing
	for b.Loop() {
		f.read(head)
	}
}
