package console

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/user"
)

// slowStore delays lookups of unknown sessions as long as the test wants.
type slowStore struct {
	signInStore
	known   [32]byte
	asking  atomic.Int64
	proceed chan struct{}
}

func (s *slowStore) FindSession(ctx context.Context, hash [32]byte) (user.Session, user.User, []byte, error) {
	if hash != s.known {
		s.asking.Add(1)
		<-s.proceed
	}
	return s.signInStore.FindSession(ctx, hash)
}

// TestSignIn_MadeUpCookies bounds the session lookups of invented cookies, so that other users can work.
func TestSignIn_MadeUpCookies(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	b.person("ada@example.com", user.Viewer, goodPassword)
	b.enter("ada@example.com", goodPassword)
	token := b.cookies["sendquota"]
	slow := &slowStore{signInStore: b.signIn.store, known: user.HashSession(token), proceed: make(chan struct{})}
	b.signIn.store = slow
	b.signIn.cfg.Address = func(r *http.Request) string { return r.RemoteAddr }
	ask := func(address, token string) int {
		r := httptest.NewRequest("GET", "/console/pushes", nil)
		r.RemoteAddr = address
		r.AddCookie(&http.Cookie{Name: "sendquota", Value: token})
		w := httptest.NewRecorder()
		b.console.ServeHTTP(w, r)
		return w.Code
	}
	var strangers sync.WaitGroup
	for range 50 {
		strangers.Go(func() { ask("192.0.2.66", strings.Repeat("x", tokenLength)) })
	}
	testenv.Until(t, time.Millisecond, "strangers have their part", func() bool { return slow.asking.Load() == addressesPart })
	for range 10 { // who waits for the strangers gets an error in the end
		if code := ask("192.0.2.1", token); code != http.StatusOK {
			t.Fatalf("who has signed in gets %d", code)
		}
	}
	if n := slow.asking.Load(); n != addressesPart {
		t.Errorf("%d lookups of one address at a time, want %d", n, addressesPart)
	}
	close(slow.proceed)
	strangers.Wait()
}

// TestOIDC_Silent: who wants to sign in at a provider that is silent waits for one question of its, however many want to.
func TestOIDC_Silent(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var asked atomic.Int64
	counting := roundTripper(func(r *http.Request) (*http.Response, error) {
		asked.Add(1)
		return http.DefaultTransport.RoundTrip(r)
	})
	b := setupSignIn(t, SignInConfig{PublicURL: "http://localhost", OIDC: OIDC{Issuer: "http://" + silent.Addr().String(), ClientID: "sq", Tenant: "acme", HTTP: &http.Client{Transport: counting, Timeout: time.Second}}})
	b.person("ada@example.com", user.Viewer, goodPassword)
	const many = 50
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			w := httptest.NewRecorder()
			if b.console.ServeHTTP(w, httptest.NewRequest("GET", oidcPath, nil)); w.Code != http.StatusBadGateway {
				t.Errorf("%d, want that the provider does not answer", w.Code)
			}
		})
	}
	b.enter("ada@example.com", goodPassword)
	if !b.inside() {
		t.Error("no user can sign in with a password")
	}
	all.Wait()
	if n := asked.Load(); n == 0 || n > many/2 { // on a busy machine, some come when a question is over
		t.Errorf("%d who want to sign in asked the provider %d times", many, n)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPage_Turns: pages are drawn in the turns of their tenant, and other tenants' work holds none up.
func TestPage_Turns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	computing := bulkhead.NewComputing[uuid.UUID](nil)
	b.console = New(b.handler, b.who, frame.Config{Computing: computing})
	// hold keeps all turns of a tenant until the test lets go.
	hold := func(tenant uuid.UUID) (release func()) {
		var all sync.WaitGroup
		held, let, turns := make(chan bool), make(chan bool), runtime.GOMAXPROCS(0)
		for range turns {
			all.Go(func() {
				_ = computing.Do(t.Context(), tenant, func() error { held <- true; <-let; return nil })
			})
		}
		for range turns {
			<-held
		}
		return func() { close(let); all.Wait() }
	}
	release := hold(uuid.New())
	b.get("/console/pushes").has(t, 200, "Messages")
	release()
	release = hold(b.tenant)
	drawn := make(chan bool)
	go func() { b.get("/console/pushes"); close(drawn) }()
	select {
	case <-drawn:
		t.Error("a page is drawn beside all that its tenant may compute")
	case <-time.After(200 * time.Millisecond):
	}
	release()
	<-drawn
}
