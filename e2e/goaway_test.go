package e2e

import (
	"cmp"
	"encoding/pem"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"github.com/sendquota/sendquota/internal/testenv/http2server"
)

const goAwayConfig = `
policy: {rules: []}
channels:
  phone: {type: apns, key_file: "DIR/apns.p8", key_id: ABCDE12345, team_id: ABCDE12345, topic: com.example.shop, base_url: "https://WEB", allow_private_addresses: true,
    timeout: 60s, on_unknown: fail, max_attempts: 5, backoff: {first: 50ms, max: 100ms}}
delivery: {lease: 130s}
`

// TestAPNs_GoAway: Apple's does so now and then. It takes ten
// of sixty pushes, says so, and goes. Although the channel repeats nothing that
// is in doubt, all arrive, each once.
func TestAPNs_GoAway(t *testing.T) {
	t.Parallel()
	const all, held, taken = 60, 40, 10
	var mu sync.Mutex
	var waiting []http2server.Request
	accepted := map[string]int{}
	accept := func(r http2server.Request) {
		accepted[r.Header.Get("apns-id")]++
		r.Answer(http.StatusOK)
	}
	server := http2server.Listen(t, func(r http2server.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Conn.Number > 0 {
			accept(r)
			return
		}
		if len(waiting) == held { // it has gone already
			return
		}
		if waiting = append(waiting, r); len(waiting) < held {
			return
		}
		slices.SortFunc(waiting, func(a, b http2server.Request) int { return cmp.Compare(a.Stream, b.Stream) })
		r.Conn.GoAway(1<<31-1, http2.ErrCodeNo)
		r.Conn.GoAway(waiting[taken-1].Stream, http2.ErrCodeNo)
		for _, r := range waiting[:taken] {
			accept(r)
		}
	})
	dir, web := t.TempDir(), strings.TrimPrefix(server.URL, "https://")
	credentials(t, dir, web)
	roots := filepath.Join(dir, "roots.pem")
	write(t, roots, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate.Raw})))
	b := setupWith(t, options{config: strings.NewReplacer("WEB", web, "DIR", dir).Replace(goAwayConfig)})
	b.Env = append(b.Env, "SSL_CERT_FILE="+roots)
	b.StartAPI()
	b.Start("worker")
	var ids []string
	for i := range all {
		push := object{"recipient": fmt.Sprint("anna-", i), "channel": "phone", "to": strings.Repeat("0a", 32), "message": object{"title": "Sale"}}
		status, a := b.call("POST", "/v1/pushes", push)
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, a)
		}
		ids = append(ids, a["id"].(string))
	}
	again := 0
	for _, id := range ids {
		var got object
		b.until(id+" has ended", func() bool {
			_, got = b.call("GET", "/v1/pushes/"+id, nil)
			return got["status"] == "sent" || got["status"] == "failed"
		})
		if sends := got["sends"].([]any); len(sends) > 1 {
			again++
		}
		if got["status"] != "sent" || strings.Contains(fmt.Sprint(got), "unknown") {
			t.Errorf("%v", got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, id := range ids {
		if accepted[id] != 1 {
			t.Errorf("%s was accepted %d times", id, accepted[id])
		}
	}
	if conns := len(server.Conns()); again < held-taken || conns != 2 {
		t.Errorf("%d pushes were tried again, over %d connections", again, conns)
	}
	b.wantAudited()
}
