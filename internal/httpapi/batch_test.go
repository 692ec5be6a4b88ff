package httpapi

import (
	"testing"
	"time"
)

func TestBatch(t *testing.T) {
	b := setup(t)
	at := b.in(time.Hour)
	good, clash := pushBody("user-1", at, ""), pushBody("user-1", b.in(time.Hour+30*time.Second), "")
	faulty := `{"recipient":"","send_at":"2000-01-01T00:00:00Z","message":1}`
	got := b.send("POST", "/v1/pushes/batch", `{"pushes":[`+good+`,`+faulty+`,`+clash+`,7]}`).must(t, 200)
	if got.at(t, "accepted") != 1.0 || got.at(t, "refused") != 3.0 {
		t.Errorf("counts %s", got.text)
	}
	for i, want := range []float64{201, 422, 409, 422} {
		if got.at(t, "results", i, "status") != want || got.at(t, "results", i, "index") != float64(i) {
			t.Errorf("result %d: %v", i, got.at(t, "results", i))
		}
	}
	if locations := locationsOf(t, got.at(t, "results", 1, "problem")); locations != "body.pushes[1].message body.pushes[1].recipient body.pushes[1].send_at" {
		t.Errorf("faults at %s", locations)
	}
	if locations := locationsOf(t, got.at(t, "results", 3, "problem")); locations != "body.pushes[3]" {
		t.Errorf("faults at %s", locations)
	}
	if got.at(t, "results", 2, "problem", "violations", 0, "conflicts", 0, "id") != got.at(t, "results", 0, "push", "id") {
		t.Errorf("the conflict is %v", got.at(t, "results", 2))
	}
}

func TestBatch_Atomic(t *testing.T) {
	b := setup(t)
	good, clash := pushBody("user-1", b.in(time.Hour), ""), pushBody("user-1", b.in(time.Hour+30*time.Second), "")
	no := b.send("POST", "/v1/pushes/batch", `{"atomic":true,"pushes":[`+good+`,`+clash+`]}`).must(t, 409, "quota-exceeded")
	if no.at(t, "accepted") != 0.0 || no.at(t, "refused") != 2.0 {
		t.Errorf("counts %s", no.text)
	}
	if no.at(t, "results", 0, "status") != 424.0 || no.at(t, "results", 0, "problem", "type") != "urn:sendquota:problem:batch-refused" || no.at(t, "results", 1, "status") != 409.0 {
		t.Errorf("results %s", no.text)
	}
	past := pushBody("user-2", "2000-01-01T00:00:00Z", "")
	for _, broken := range []string{`{"recipient":"user-2"}`, past} {
		bad := b.send("POST", "/v1/pushes/batch", `{"pushes":[`+good+`,`+broken+`,`+past+`],"atomic":true}`).must(t, 422, "invalid-request")
		if got := locationsOf(t, bad.body); got != "body.pushes[1].message body.pushes[2].send_at" && got != "body.pushes[1].send_at body.pushes[2].send_at" {
			t.Errorf("faults at %s", got)
		}
	}
	b.noTrace()
	yes := b.send("POST", "/v1/pushes/batch", `{"atomic":true,"pushes":[`+good+`,`+pushBody("user-2", b.in(time.Hour), "")+`]}`).must(t, 200)
	if yes.at(t, "accepted") != 2.0 || yes.at(t, "results", 1, "status") != 201.0 {
		t.Errorf("accepted %s", yes.text)
	}
}

func TestBatch_Idempotency(t *testing.T) {
	b := setup(t)
	one, two, three := pushBody("user-1", b.in(time.Hour), ""), pushBody("user-2", b.in(time.Hour), ""), pushBody("user-3", b.in(time.Hour), "")
	for _, atomic := range []string{"true", "false"} {
		batch := `{"atomic":` + atomic + `,"pushes":[` + one + `,` + two + `]}`
		key := "key " + atomic
		first := b.send("POST", "/v1/pushes/batch", batch, "Idempotency-Key", key)
		if atomic == "false" { // the atomic batch holds the places
			if first.at(t, "refused") != 2.0 {
				t.Errorf("%s", first.text)
			}
			continue
		}
		for range 2 {
			again := b.send("POST", "/v1/pushes/batch", batch, "Idempotency-Key", key).must(t, 200)
			if again.at(t, "accepted") != 2.0 || again.at(t, "results", 1, "replayed") != true || again.at(t, "results", 1, "push", "id") != first.at(t, "results", 1, "push", "id") {
				t.Errorf("replayed %s", again.text)
			}
			if again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("headers of the first %v, of the replay %v", first.header, again.header)
			}
			b.advance(2 * time.Hour)
		}
		b.advance(-4 * time.Hour)
		// A longer batch under the same key must not book its surplus.
		b.send("POST", "/v1/pushes/batch", `{"pushes":[`+one+`,`+two+`,`+three+`]}`, "Idempotency-Key", key).must(t, 422, "idempotency-key-reused")
		if got := b.send("GET", "/v1/pushes?recipient=user-3", "").at(t, "pushes").([]any); len(got) != 0 {
			t.Errorf("a refused batch booked %v", got)
		}
	}
}

// TestBatch_PartlyReplayed: a batch is no replay if a member was refused before and has a place now.
func TestBatch_PartlyReplayed(t *testing.T) {
	b := setup(t)
	id := b.send("POST", "/v1/pushes", pushBody("user-2", b.in(time.Hour), "")).must(t, 201).at(t, "id").(string)
	batch := `{"pushes":[` + pushBody("user-1", b.in(time.Hour), "") + `,` + pushBody("user-2", b.in(time.Hour), "") + `]}`
	for i, want := range []string{"", "true", "", "true"} {
		if i == 2 {
			b.send("POST", "/v1/pushes/"+id+"/cancel", "").must(t, 200)
		}
		r := b.send("POST", "/v1/pushes/batch", batch, "Idempotency-Key", "k").must(t, 200)
		if got := r.header.Get("Idempotency-Replayed"); got != want {
			t.Errorf("request %d: replayed %q, want %q: %s", i, got, want, r.text)
		}
	}
}
