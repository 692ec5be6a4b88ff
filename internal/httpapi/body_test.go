package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestBody_Endless sends a body of unknown length over a real connection.
func TestBody_Endless(t *testing.T) {
	b := setup(t)
	server := httptest.NewServer(b.api)
	defer server.Close()
	endless := io.MultiReader(strings.NewReader(`{"recipient":"`), strings.NewReader(strings.Repeat("x", 1<<20)))
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/pushes", endless)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.key)
	res, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 413 || !res.Close {
		t.Errorf("%d, closed %v", res.StatusCode, res.Close)
	}
}

// TestBody_DrainedIfTooLarge: callers that know no other way get the answer to a body that is too large as
// well. Those that ask before they write are not told to.
func TestBody_DrainedIfTooLarge(t *testing.T) {
	b := setup(t)
	server := httptest.NewServer(b.api)
	defer server.Close()
	const size = 10 << 20
	for name, c := range map[string]struct {
		headers, body string
	}{
		"of known length":   {fmt.Sprintf("Content-Length: %d\r\n", size), strings.Repeat(" ", size)},
		"of unknown length": {"Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, strings.Repeat(" ", size))},
		"held back":         {fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n", size), ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			head := "POST /v1/pushes/batch HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + b.key + "\r\n" + c.headers + "\r\n"
			if _, err := io.WriteString(conn, head+c.body); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != 413 {
				t.Errorf("status %d", res.StatusCode)
			}
		})
	}
}

// TestBody_Bounds tries what is just allowed and what is just too much.
func TestBody_Bounds(t *testing.T) {
	b := setup(t)
	sized := func(n int) string {
		head := `{"recipient":"user-1","send_at":"` + b.in(time.Hour) + `","message":{"body":"`
		return head + strings.Repeat("x", n-len(head)-3) + `"}}`
	}
	tooLarge := b.send("POST", "/v1/pushes?validate_only=true", sized(65537)).must(t, 413, "too-large")
	if tooLarge.header.Get("Connection") != "close" {
		t.Error("the rest of a body that is too large must not be waited for")
	}
	b.send("POST", "/v1/pushes?validate_only=true", sized(65536)).must(t, 201)
	batch := func(n int) string {
		head, tail := `{"pushes":[`, `]}`
		var members []string
		for i := range 100 {
			members = append(members, strings.Replace(sized(40000), "user-1", fmt.Sprintf("user-%d", i), 1))
		}
		text := head + strings.Join(members, ",") + tail
		return text + strings.Repeat(" ", n-len(text))
	}
	b.send("POST", "/v1/pushes/batch?validate_only=true", batch(4194304)).must(t, 200)
	b.send("POST", "/v1/pushes/batch?validate_only=true", batch(4194305)).must(t, 413, "too-large")
	b.send("POST", "/v1/pushes/batch?validate_only=true", `{"pushes":[`+sized(65536)+`]}`).must(t, 200)
	huge := b.send("POST", "/v1/pushes/batch?validate_only=true", `{"pushes":[`+sized(65537)+`,`+pushBody("user-2", b.in(time.Hour), "")+`]}`).must(t, 200)
	if huge.at(t, "accepted") != 1.0 || huge.at(t, "results", 0, "problem", "errors", 0, "location") != "body.pushes[0]" {
		t.Errorf("a member larger than a body: %s", huge.text)
	}
	b.noTrace()

	longest := strings.Repeat("ü", 64) // 128 bytes
	for _, body := range []string{
		pushBody(longest, b.in(time.Hour), ""),
		pushBody("~ !", b.in(time.Hour), `,"category":"`+strings.Repeat("c", 64)+`","to":"`+strings.Repeat("t", 512)+`"`),
		pushBody("low", strings.ToLower(b.in(time.Hour)), ""),
		pushBody("empty", b.in(time.Hour), `,"category":"","to":"","channel":""`),
		pushBody("deep", b.in(time.Hour), `,"metadata":`+strings.Repeat(`{"a":`, 99)+"[]"+strings.Repeat("}", 99)),
		// Postgres keeps these as they are.
		pushBody("odd", b.in(time.Hour), `,"metadata":{"nul":"\u0000","big":1e999999,"a":1,"a":2}`),
	} {
		b.send("POST", "/v1/pushes", body, "Idempotency-Key", strings.Repeat("k", 255-len(body)%200)).must(t, 201)
	}
	odd := b.send("GET", "/v1/pushes?recipient=odd", "")
	if !strings.Contains(odd.text, `"metadata":{"nul":"\u0000","big":1e999999,"a":1,"a":2}`) {
		t.Errorf("metadata changed: %s", odd.text)
	}
}
