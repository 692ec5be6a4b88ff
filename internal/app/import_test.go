package app

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestServer_LongImport: an import may take longer than other requests, as long as its caller goes on sending.
func TestServer_LongImport(t *testing.T) {
	t.Parallel()
	h := setup(t, serverTimeouts{header: time.Minute, request: 2 * time.Second, answer: 2 * time.Second, idle: time.Minute, stop: time.Minute, headerBytes: 32 << 10, connections: 10})
	r, w := io.Pipe()
	began := time.Now()
	go func() {
		_, _ = io.WriteString(w, "recipient,time_zone\n")
		for i := 0; time.Since(began) < 9*time.Second/2; i++ { // longer than request and answer may take
			_, _ = fmt.Fprintf(w, "user-%d,Asia/Tokyo\n", i)
			time.Sleep(50 * time.Millisecond)
		}
		_ = w.Close()
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.addr+"/v1/recipients/import", r)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Content-Type", "text/csv")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 || !strings.Contains(string(text), `"rejected":0`) {
		t.Errorf("%d %s, %v", answer.StatusCode, text, err)
	}
}
