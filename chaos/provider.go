package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/process"
)

// arrival is a line of the provider's journal: the truth about an attempt. It
// is written before the provider answers.
type arrival struct {
	Push      string `json:"push"`
	Key       string `json:"key"`
	Recipient string `json:"recipient"`
	Attempt   int    `json:"attempt"`
	At        int64  `json:"at"` // when the request had been read, Unix nanoseconds
	Manner    string `json:"manner"`
	Taken     bool   `json:"taken"` // the recipient has it
}

func (a arrival) time() time.Time { return time.Unix(0, a.At) }

// provider is the process of the provider, as its bundle sees it.
type provider struct {
	process *process.Process
	addr    string
	env     []string
	lab     *lab
	journal string
	lives   int
}

func (l *lab) startProvider(ctx context.Context, dir, behaviour string) (*provider, error) {
	addr, err := process.FreeAddr()
	if err != nil {
		return nil, err
	}
	p := &provider{addr: addr, lab: l, journal: filepath.Join(dir, "journal.jsonl")}
	p.env = []string{"ADDR=" + addr, "JOURNAL=" + p.journal, "BEHAVIOUR=" + behaviour, fmt.Sprint("SEED=", l.seed)}
	return p, p.start(ctx)
}

func (p *provider) start(ctx context.Context) error {
	p.lives++
	var err error
	p.process, err = process.Start(process.Command{Name: "provider", Path: p.lab.self, Args: []string{"role-provider"}, Env: p.env,
		Log: fmt.Sprintf("%s.%d.log", strings.TrimSuffix(p.journal, ".jsonl"), p.lives)})
	if err != nil {
		return err
	}
	return p.process.AwaitListen(ctx, p.addr)
}

func (p *provider) url() string { return "http://" + p.addr + "/send" }

// arrivals reads the journal.
func (p *provider) arrivals() ([]arrival, error) {
	text, err := os.ReadFile(p.journal)
	if err != nil {
		return nil, err
	}
	var all []arrival
	for line := range bytes.Lines(text) {
		var a arrival
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		all = append(all, a)
	}
	return all, nil
}

// runProvider is the provider's process.
func runProvider() error {
	journal, err := os.OpenFile(os.Getenv("JOURNAL"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: os.Getenv("ADDR"), Handler: simulator{journal, os.Getenv("BEHAVIOUR"), os.Getenv("SEED")}}
	return server.ListenAndServe()
}

// simulator is a provider that behaves well or badly.
type simulator struct {
	journal   io.Writer
	behaviour string // well, badly
	seed      string
}

// manner is a way to treat a request.
type manner struct {
	name  string
	taken bool
	do    func(w http.ResponseWriter)
}

// manners are all of them. The recipient of a push that was taken has it,
// whatever the answer says.
var manners = []manner{
	{"takes it", true, func(w http.ResponseWriter) { fmt.Fprint(w, `{"id":"provider-1"}`) }},
	{"takes it slowly", true, func(w http.ResponseWriter) { time.Sleep(200 * time.Millisecond); fmt.Fprint(w, `{"id":"provider-2"}`) }},
	{"takes it, answers 10 MB", true, func(w http.ResponseWriter) { _, _ = w.Write(bytes.Repeat([]byte("x"), 10<<20)) }},
	{"takes it, answers 500", true, func(w http.ResponseWriter) { w.WriteHeader(500) }},
	{"takes it, drops the connection", true, drop},
	{"takes it, hangs", true, hang},
	{"takes it, drips", true, drip},
	{"answers 500", false, func(w http.ResponseWriter) { w.WriteHeader(500) }},
	{"drops the connection", false, drop},
	{"hangs", false, hang},
	{"answers 429", false, func(w http.ResponseWriter) { w.Header().Set("Retry-After", "1"); w.WriteHeader(429) }},
	{"answers 503", false, func(w http.ResponseWriter) { w.Header().Set("Retry-After", "1"); w.WriteHeader(503) }},
	{"answers 400", false, func(w http.ResponseWriter) { w.WriteHeader(400) }},
	{"redirects", false, func(w http.ResponseWriter) { w.Header().Set("Location", "/elsewhere"); w.WriteHeader(302) }},
}

func drop(w http.ResponseWriter) {
	if conn := hijack(w); conn != nil {
		_ = conn.Close()
	}
}

// hang keeps the connection open for longer than anybody waits.
func hang(w http.ResponseWriter) {
	if conn := hijack(w); conn != nil {
		time.Sleep(5 * time.Second)
		_ = conn.Close()
	}
}

// drip sends an answer a byte at a time.
func drip(w http.ResponseWriter) {
	conn := hijack(w)
	if conn == nil {
		return
	}
	defer conn.Close()
	for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") {
		if _, err := conn.Write([]byte{b}); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	return conn
}

// ServeHTTP takes down what came, and behaves.
func (s simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/send" {
		panic(errors.New("somebody followed the redirect"))
	}
	var body struct {
		ID, Recipient string
		Attempt       int
	}
	if err := json.NewDecoder(bufio.NewReader(r.Body)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	at := time.Now()
	m := s.choose(body.Recipient, body.ID, body.Attempt)
	line, err := json.Marshal(arrival{
		Push: body.ID, Key: r.Header.Get("Idempotency-Key"), Recipient: body.Recipient, Attempt: body.Attempt, At: at.UnixNano(), Manner: m.name, Taken: m.taken,
	})
	if err == nil {
		_, err = s.journal.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
	m.do(w)
}

// choose decides by the push and the attempt, so that a run with the same seed
// and the same pushes meets the same. A recipient whose name begins with the
// number of a manner and a dash meets that at the first attempt.
func (s simulator) choose(recipient, push string, attempt int) manner {
	for i, m := range manners {
		if strings.HasPrefix(recipient, fmt.Sprintf("%d-", i)) && attempt == 1 {
			return m
		}
	}
	if s.behaviour != "badly" {
		return manners[0]
	}
	h := fnv.New32a()
	fmt.Fprint(h, s.seed, push, attempt)
	if n := h.Sum32() % 100; n < 40 {
		return manners[n%uint32(len(manners))]
	}
	return manners[0]
}
