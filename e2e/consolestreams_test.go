package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// session signs a new user with a role in to the console, without a browser.
func (b *bundle) session(role string) *http.Client {
	b.t.Helper()
	const password = "six geese walk over the bridge"
	jar, err := cookiejar.New(nil)
	testenv.Check(b.t, err)
	c := &http.Client{Jar: jar, Transport: &http.Transport{}}
	b.t.Cleanup(c.CloseIdleConnections)
	post := func(path string, form url.Values) (landed string) {
		b.t.Helper()
		answer, err := c.PostForm(b.api+path, form)
		testenv.Check(b.t, err)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			b.t.Fatalf("POST %s: %s", path, answer.Status)
		}
		return answer.Request.URL.Path
	}
	email := role + "@example.com"
	link := strings.TrimSpace(b.Tool("users", "create", "--tenant", "acme", "--email", email, "--role", role))
	post(link[strings.Index(link, "/console/"):], url.Values{"password": {password}, "again": {password}})
	if at := post("/console/sign-in", url.Values{"email": {email}, "password": {password}, "to": {"/console/settings"}}); strings.HasPrefix(at, "/console/sign-in") {
		b.t.Fatalf("%s is not signed in", email)
	}
	return c
}

// liveStream is a page that follows how things stand.
type liveStream struct {
	messages atomic.Int64
	ended    error // nil: in good order
}

// follow opens a stream, and reads it until it ends.
func (b *bundle) follow(c *http.Client, all *sync.WaitGroup) *liveStream {
	b.t.Helper()
	answer, err := c.Get(b.api + "/console/now/live")
	testenv.Check(b.t, err)
	b.t.Cleanup(func() { _ = answer.Body.Close() })
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		b.t.Fatalf("%s, %s", answer.Status, kind)
	}
	s := &liveStream{}
	all.Go(func() {
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if lines.Text() == "" {
				s.messages.Add(1)
			}
		}
		s.ended = lines.Err()
	})
	return s
}

// TestConsole_Streams opens twenty live pages at one API. Its callers are served as fast as at another API without live
// pages; and when the first API stops, the streams end in good order and delay nothing.
func TestConsole_Streams(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: strings.Replace(consoleConfig, "drain: 0s", "drain: 1s", 1)})
	api := b.StartAPI()
	b.Start("worker")
	other := b.beside()
	calm := b.tenant("calm")

	var all sync.WaitGroup
	var streams []*liveStream
	for _, role := range []string{"viewer", "admin"} {
		c := b.session(role)
		for range 10 {
			streams = append(streams, b.follow(c, &all))
		}
	}
	came := func(messages int64) bool {
		for _, s := range streams {
			if s.messages.Load() < messages {
				return false
			}
		}
		return true
	}
	b.until("all follow", func() bool { return came(1) })

	// The tenant whose pages follow, and another one, submit at both APIs by rounds.
	submit := func(to *bundle, recipient string) time.Duration {
		began := time.Now()
		a, err := to.ask("POST", "/v1/pushes", object{"recipient": recipient, "channel": "log", "message": object{"title": "Hi"}})
		if err != nil || a.status != http.StatusCreated {
			t.Fatalf("submit: %v %v", a, err)
		}
		return time.Since(began)
	}
	elsewhere := func(of *bundle) *bundle {
		there := *other
		there.Key = of.Key
		return &there
	}
	var here, there time.Duration
	rounds := 0
	for ; rounds < 50 || !came(4); rounds++ {
		for _, tenant := range []*bundle{b, calm} {
			here += submit(tenant, fmt.Sprint("here-", rounds))
			there += submit(elsewhere(tenant), fmt.Sprint("there-", rounds))
		}
	}
	t.Logf("%d submits took %s beside 20 streams, and %s without", 2*rounds, here, there)
	if here > 5*there {
		t.Errorf("%d submits took %s beside 20 streams, and %s without", 2*rounds, here, there)
	}

	b.stop(api)
	all.Wait()
	for i, s := range streams {
		if s.ended != nil {
			t.Errorf("stream %d ended with %v after %d messages", i, s.ended, s.messages.Load())
		}
	}
	if strings.Contains(api.Log(), "some clients have not read their answers") {
		t.Errorf("the API waited for the streams in vain:\n%s", api.LogTail())
	}
	submit(elsewhere(b), "after")
}
