package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestServer_LongSimulation: a simulation may take longer than other requests, whichever way it answers.
func TestServer_LongSimulation(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	h := setup(t, calm)
	ask := func(method, path, media, accept string, body io.Reader) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+h.addr+path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+h.key)
		req.Header.Set("Content-Type", media)
		req.Header.Set("Accept", accept)
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode > 299 {
			t.Fatalf("%s %s: %d %.500s, %v", method, path, answer.StatusCode, text, err)
		}
		return string(text)
	}
	var draft struct{ ID string }
	if err := json.Unmarshal([]byte(ask("POST", "/v1/campaigns", "application/json", "*/*", strings.NewReader(`{"message":{"body":"Hello."}}`))), &draft); err != nil {
		t.Fatal(err)
	}
	const recipients = 15_000
	audience := bytes.NewBufferString("recipient\n")
	for i := range recipients {
		fmt.Fprintf(audience, "user-%d\n", i)
	}
	ask("PUT", "/v1/campaigns/"+draft.ID+"/audience", "text/csv", "*/*", audience)
	h.listen(serverTimeouts{header: time.Minute, request: limit, answer: limit, idle: time.Minute, stop: time.Minute, headerBytes: 32 << 10, connections: 10})
	for _, accept := range []string{"application/json", "application/x-ndjson"} {
		began := time.Now()
		text := ask("POST", "/v1/campaigns/"+draft.ID+"/simulate", "", accept, http.NoBody)
		if took := time.Since(began); took < 2*limit {
			t.Logf("it took only %s", took)
		}
		if !strings.Contains(text, fmt.Sprintf(`{"recipients":%d,"accepted":%d,`, recipients, recipients)) {
			t.Errorf("%s: %.500s", accept, text)
		}
	}
}
