package main

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestRequest_RecipientNumbers(t *testing.T) {
	r := newRequest("POST", "/v1/pushes/batch", "secret", batchBody(3, "2026-12-01T09:00:00Z"))
	r.number(99)
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(r.text)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"user-0000000099"`, `"user-0000000100"`, `"user-0000000101"`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if int64(len(body)) != req.ContentLength || req.Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("length %d of %d, headers %v", len(body), req.ContentLength, req.Header)
	}
}

func TestReadAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		status     int
		accepted   int
		fails      bool
	}{
		{"by length", "HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}", 201, 1, false},
		{"empty", "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n", 409, 0, false},
		{"in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"acc\r\nc\r\nepted\":17,  \r\n0\r\n\r\n", 200, 17, false},
		{"cut short", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 200, 0, true},
		{"closing", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", 200, 0, true},
		{"something else", "SSH-2.0-OpenSSH_9.2\r\n", 0, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const rest = "HTTP/1.1 204 No Content\r\n\r\n"
			r := bufio.NewReader(strings.NewReader(tt.text))
			if !tt.fails {
				r = bufio.NewReader(strings.NewReader(tt.text + rest))
			}
			a, err := readAnswer(r, nil)
			if tt.fails {
				if err == nil {
					t.Errorf("read %+v", a)
				}
				return
			}
			if err != nil || a.status != tt.status || a.accepted() != tt.accepted {
				t.Errorf("status %d, accepted %d, error %v", a.status, a.accepted(), err)
			}
			if left, _ := io.ReadAll(r); string(left) != rest {
				t.Errorf("left of the stream: %q", left)
			}
		})
	}
}

func TestProvider_Pushes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go new(provider).accept(listener)
	c := providerClient{t, listener.Addr().String()}
	for _, id := range []string{"a", "b"} {
		req, err := http.NewRequest(http.MethodPost, c.url(), strings.NewReader(`{"id":"`+id+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", id)
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		_ = res.Body.Close()
	}
	if n := c.count(); n != 2 {
		t.Errorf("count %d", n)
	}
	arrivals := c.take()
	if len(arrivals) != 2 || arrivals[1].push != "b" || arrivals[1].at.Before(arrivals[0].at) {
		t.Errorf("arrivals %v", arrivals)
	}
	if once(arrivals, 2) != nil || once(arrivals, 3) == nil || once(append(arrivals, arrivals[0]), 3) == nil {
		t.Error("once does not tell once from twice")
	}
}

func TestNaiveService_Rules(t *testing.T) {
	booked := func(away ...time.Duration) []redis.Z {
		var all []redis.Z
		for _, d := range away {
			all = append(all, redis.Z{Score: float64(d.Milliseconds())})
		}
		return all
	}
	const h = time.Hour
	for _, tt := range []struct {
		name   string
		booked []redis.Z
		free   bool
	}{
		{"nothing", nil, true},
		{"a minute away", booked(time.Minute, -time.Minute), true},
		{"less than a minute", booked(-59 * time.Second), false},
		{"five in the hour", booked(10*time.Minute, 20*time.Minute, 30*time.Minute, 40*time.Minute, 50*time.Minute), false},
		{"ten in the day", booked(h, 2*h, 3*h, 4*h, 5*h, 6*h, 7*h, 8*h, 9*h, 10*h), false},
		{"nine in the day", booked(h, 2*h, 3*h, 4*h, 5*h, 6*h, 7*h, 8*h, 9*h, 24*h), true},
	} {
		if placeLeft(tt.booked, 0) != tt.free {
			t.Errorf("%s: free is %t", tt.name, !tt.free)
		}
	}
}

func TestPairs_Ratios(t *testing.T) {
	median, least, most := pairs{[]float64{10, 30, 10}, []float64{5, 10, 10}}.ratios()
	if median != 2 || least != 1 || most != 3 {
		t.Errorf("ratios %v %v %v", median, least, most)
	}
}

func TestCount_Groups(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1 000", 1234567.4: "1 234 567"} {
		if got := count(n); got != want {
			t.Errorf("count(%v) is %q", n, got)
		}
	}
}

func TestLife_Plans(t *testing.T) {
	one := life{API: 100, Worker: 200, Postgres: 300, Redis: 6, WAL: 1000, Images: 2000, Heap: 400, Indexes: 300, Sends: 300, Memory: 320}
	z := one.For(864) // ten thousand a second
	// By hand, for a peak of 100,000 a second: processors that are busy for 60 %, and a day's gigabytes.
	for name, pair := range map[string][2]float64{
		"API": {z.API, 100e3 * 100e-6 / 0.6}, "worker": {z.Worker, 100e3 * 200e-6 / 0.6}, "Postgres": {z.Postgres, 50}, "Redis": {z.Redis, 1},
		"WAL": {z.WAL, 300}, "day": {z.Day, 864}, "kept": {z.Kept, 25.92}, "memory": {z.Memory, 100e3 * 600 * 320 / 1e9},
		"servers": {z.Databases, 3}, // the disk: 26 TB on servers of 10; processors and the log need two
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-6*pair[1] {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	if got, want := one.For(1).String(), "| 1 | 12 | 116 | 0.02 | 0.04 | 0.06 | 0.0012 | 0.35 | 1 | 0.03 | 0.02 | 1 |"; got != want {
		t.Errorf("a row is\n%s, want\n%s", got, want)
	}
}

func TestInsertInto_Part(t *testing.T) {
	const begin, end = "<!-- measured: `make scale` -->\n", "<!-- /measured -->\n"
	got, err := insertInto([]byte("# Title\n"+begin+"old\n"+end+"rest\n"), []byte("new\n"))
	if want := "# Title\n" + begin + "new\n" + end + "rest\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	for _, page := range []string{"", begin, end, end + begin} {
		if _, err := insertInto([]byte(page), nil); err == nil {
			t.Errorf("a page without the part is taken: %q", page)
		}
	}
}

// TestScalePage_HasPart: make scale finds its place in docs/scale.md.
func TestScalePage_HasPart(t *testing.T) {
	page, err := os.ReadFile("../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := insertInto(page, nil); err != nil {
		t.Error(err)
	}
}

// TestReport_Pages: both pages are made from a report that has everything.
func TestReport_Pages(t *testing.T) {
	r := report{measuring: "size", Command: "make", Rounds: 3}
	r.add(row{Name: "Lists", Ours: "1", Theirs: "2", OK: yes(false)})
	r.note("A note.")
	r.used("sendquota", 2, usage{"api": 4e-6})
	r.Profiles = []profile{{Measurement: "lists", Program: "Postgres", How: "samples", Top: "SELECT 1"}}
	for _, pushes := range []string{"", "1 000 000"} {
		r.Pushes, r.Life = pushes, life{API: 17}
		var text strings.Builder
		if err := r.write(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"| Lists | 1 | 2 |", "- A note.", "| size | sendquota | api 2 |", "SELECT 1"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in\n%s", want, text.String())
			}
		}
		if strings.Contains(text.String(), "| CPU of the API | 17 µs |") != (pushes != "") {
			t.Errorf("the page is the wrong one:\n%s", text.String())
		}
	}
}
