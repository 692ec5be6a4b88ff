package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestWalk goes the way that the README shows.
func TestWalk(t *testing.T) {
	b := setup(t)
	noon := b.now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour)
	at := func(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }

	// A push is booked.
	first := b.send("POST", "/v1/pushes", pushBody("user-42", at(0), `,"channel":"sms","category":"marketing","to":"+45 1","metadata":{"campaign":"x"}`)).must(t, 201)
	id := first.at(t, "id").(string)
	if got := first.header.Get("Location"); got != "/v1/pushes/"+id {
		t.Errorf("Location %q", got)
	}
	for name, want := range map[string]any{
		"status": "scheduled", "recipient": "user-42", "channel": "sms", "category": "marketing", "to": "+45 1",
		"send_at": at(0), "requested_send_at": at(0), "deferred": false, "expires_at": at(24 * time.Hour), "attempts": 0.0,
		"possibly_delivered": false,
	} {
		if got := first.at(t, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := first.at(t, "sends").([]any); len(got) != 0 {
		t.Errorf("sends %v", got)
	}
	if got := fmt.Sprint(first.at(t, "quota", 0)); got != "map[limit:1 remaining:0 rule:per-minute used:1 window_seconds:60]" {
		t.Errorf("quota %s", got)
	}
	if got := fmt.Sprint(first.at(t, "metadata"), first.at(t, "message")); got != "map[campaign:x] map[body:Hello.]" {
		t.Errorf("metadata and message %s", got)
	}

	// A second one too near is refused, with the reason and the nearest free times.
	no := b.send("POST", "/v1/pushes", pushBody("user-42", at(30*time.Second), "")).must(t, 409, "quota-exceeded")
	if got := no.at(t, "violations", 0, "rule"); got != "per-minute" {
		t.Errorf("rule %v", got)
	}
	if got := fmt.Sprint(no.at(t, "violations", 0, "conflicts")); got != fmt.Sprintf("[map[id:%s send_at:%s]]", id, at(0)) {
		t.Errorf("conflicts %s", got)
	}
	if next, previous := no.at(t, "next_available_at"), no.at(t, "previous_available_at"); next != at(time.Minute) || previous != at(-time.Minute) {
		t.Errorf("next %v, previous %v", next, previous)
	}
	if got, want := no.at(t, "detail"), "user-42 already has 1 send within 1 minute of "+at(30*time.Second)+" (rule per-minute)"; got != want {
		t.Errorf("detail %q, want %q", got, want)
	}
	next := no.at(t, "next_available_at").(string)
	b.send("POST", "/v1/pushes", pushBody("user-42", next, "")).must(t, 201)

	// Deferred, it finds the next free time by itself.
	deferred := b.send("POST", "/v1/pushes", pushBody("user-42", at(0), `,"on_conflict":"defer"`)).must(t, 201)
	if deferred.at(t, "send_at") != at(2*time.Minute) || deferred.at(t, "requested_send_at") != at(0) || deferred.at(t, "deferred") != true {
		t.Errorf("deferred to %v", deferred.text)
	}
	b.send("POST", "/v1/pushes", pushBody("user-42", at(0), `,"on_conflict":"defer","latest":"`+at(2*time.Minute)+`"`)).must(t, 409, "quota-exceeded")

	// Read it, see its place in the quota and in time.
	b.send("GET", "/v1/pushes/"+id, "").must(t, 200)
	usage := b.send("GET", "/v1/recipients/user-42/quota?at="+at(0), "").must(t, 200)
	if usage.at(t, "rules", 1, "used") != 3.0 || usage.at(t, "rules", 1, "remaining") != 2.0 || usage.at(t, "allowed") != false ||
		usage.at(t, "next_available_at") != at(3*time.Minute) || usage.at(t, "at") != at(0) || usage.at(t, "recipient") != "user-42" {
		t.Errorf("quota %s", usage.text)
	}
	slots := b.send("GET", "/v1/recipients/user-42/slots?from="+at(-time.Hour)+"&until="+at(time.Hour), "").must(t, 200)
	if got := fmt.Sprint(slots.at(t, "blocked", 0)); got != fmt.Sprintf("map[from:%s from_open:true rules:[per-minute] until:%s until_open:true]", at(-time.Minute), at(time.Minute)) {
		t.Errorf("blocked %s", got)
	}
	if got := slots.at(t, "bookings").([]any); len(got) != 3 || slots.at(t, "bookings", 0, "id") != id || slots.at(t, "bookings", 0, "status") != "scheduled" {
		t.Errorf("bookings %v", got)
	}

	// Asking books nothing.
	question := `{"recipient":"user-42","send_at":"` + at(30*time.Second) + `"}`
	check := b.send("POST", "/v1/quota/check", question).must(t, 200)
	if check.at(t, "allowed") != false || check.at(t, "next_available_at") != at(3*time.Minute) || check.at(t, "violations", 0, "rule") != "per-minute" {
		t.Errorf("check %s", check.text)
	}
	free := b.send("POST", "/v1/quota/check", `{"recipient":"user-43","channel":"push","category":"c"}`).must(t, 200)
	if free.at(t, "allowed") != true || len(free.at(t, "violations").([]any)) != 0 || free.at(t, "next_available_at") == nil {
		t.Errorf("check %s", free.text)
	}

	// Move it; a refused move keeps the old place.
	moved := b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+at(2*time.Hour)+`"}`).must(t, 200)
	if moved.at(t, "send_at") != at(2*time.Hour) || moved.at(t, "expires_at") != at(26*time.Hour) || moved.at(t, "quota", 0, "used") != 1.0 {
		t.Errorf("moved %s", moved.text)
	}
	b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+next+`"}`).must(t, 409, "quota-exceeded")
	if got := b.send("GET", "/v1/pushes/"+id, "").at(t, "send_at"); got != at(2*time.Hour) {
		t.Errorf("a refused move moved it to %v", got)
	}

	// Cancel it, twice; then it cannot be moved.
	for range 2 {
		canceled := b.send("POST", "/v1/pushes/"+id+"/cancel", "").must(t, 200)
		if canceled.at(t, "status") != "canceled" || canceled.at(t, "possibly_delivered") != false {
			t.Errorf("canceled %s", canceled.text)
		}
	}
	b.send("POST", "/v1/pushes/"+id+"/cancel", "{}").must(t, 200)
	stuck := b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+at(3*time.Hour)+`"}`).must(t, 409, "not-reschedulable")
	if stuck.at(t, "push", "id") != id || stuck.at(t, "push", "status") != "canceled" {
		t.Errorf("not reschedulable %s", stuck.text)
	}
	b.send("POST", "/v1/pushes", pushBody("user-42", at(2*time.Hour), "")).must(t, 201) // its place is free
}

func TestSubmit_Idempotency(t *testing.T) {
	b := setup(t)
	body := pushBody("user-1", b.in(time.Hour), "")
	first := b.send("POST", "/v1/pushes", body, "Idempotency-Key", "k1").must(t, 201)
	if got := first.header.Get("Idempotency-Replayed"); got != "" {
		t.Errorf("the first is replayed: %q", got)
	}
	same := strings.Replace(body, `{"recipient":"user-1",`, "{\n  ", 1)
	same = strings.TrimSuffix(same, "}") + `, "recipient" : "user-1"}`
	for _, given := range []string{body, same} {
		again := b.send("POST", "/v1/pushes", given, "Idempotency-Key", "k1").must(t, 201)
		if again.at(t, "id") != first.at(t, "id") || again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("replayed %v %s", again.header, again.text)
		}
		if fmt.Sprint(again.body) != fmt.Sprint(first.body) {
			t.Errorf("the replay differs:\n%s%s", first.text, again.text)
		}
	}
	b.send("POST", "/v1/pushes", pushBody("user-1", b.in(2*time.Hour), ""), "Idempotency-Key", "k1").must(t, 422, "idempotency-key-reused")
	b.send("POST", "/v1/pushes", body, "Idempotency-Key", "k1", "Authorization", "Bearer "+b.other).must(t, 201) // its own namespace

	// Long after the send time, the same request still gets the same push.
	b.advance(3 * time.Hour)
	late := b.send("POST", "/v1/pushes", body, "Idempotency-Key", "k1").must(t, 201)
	if late.at(t, "id") != first.at(t, "id") || late.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("late replay %s", late.text)
	}
	b.send("POST", "/v1/pushes", body, "Idempotency-Key", "k2").must(t, 422, "invalid-request")
	b.send("POST", "/v1/pushes", strings.Replace(body, "user-1", "user-2", 1), "Idempotency-Key", "k1").must(t, 422, "idempotency-key-reused")
	if rows, _ := b.traces(); rows != 1 { // and one of the other tenant
		t.Errorf("%d rows", rows)
	}
}

func TestSubmit_ValidateOnly(t *testing.T) {
	b := setup(t)
	body := pushBody("user-1", b.in(time.Hour), "")
	dry := b.send("POST", "/v1/pushes?validate_only=true", body).must(t, 201)
	if dry.at(t, "status") != "scheduled" || dry.header.Get("Location") != "" {
		t.Errorf("%v %s", dry.header, dry.text)
	}
	b.send("POST", "/v1/pushes/batch?validate_only=true", `{"pushes":[`+body+`]}`).must(t, 200)
	b.noTrace()
	b.send("POST", "/v1/pushes?validate_only=false", body).must(t, 201)
	b.send("POST", "/v1/pushes?validate_only=true", body).must(t, 409, "quota-exceeded")
}

func TestList_Pages(t *testing.T) {
	b := setup(t)
	var want []string
	for i := range 7 {
		recipient := fmt.Sprintf("user-%d", i%2)
		r := b.send("POST", "/v1/pushes", pushBody(recipient, b.in(time.Duration(i+1)*time.Hour), `,"category":"c"`)).must(t, 201)
		want = append(want, r.at(t, "id").(string))
	}
	b.send("POST", "/v1/pushes", pushBody("user-0", b.in(time.Hour), ""), "Authorization", "Bearer "+b.other).must(t, 201)

	var got []string
	token := ""
	for page := 1; ; page++ {
		r := b.send("GET", "/v1/pushes?page_size=3&category=c&status=&page_token="+token, "").must(t, 200)
		for _, p := range r.at(t, "pushes").([]any) {
			got = append(got, p.(map[string]any)["id"].(string))
		}
		if token = r.at(t, "next_page_token").(string); token == "" {
			if page != 3 {
				t.Errorf("%d pages", page)
			}
			break
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("listed\n%v, want\n%v", got, want)
	}
	b.send("POST", "/v1/pushes/"+want[1]+"/cancel", "").must(t, 200)
	for query, n := range map[string]int{
		"recipient=user-0": 4, "recipient=user-1&status=canceled": 1, "status=scheduled": 6, "channel=sms": 0, "channel=push": 7,
		"from=" + b.in(3*time.Hour+time.Minute): 4, "until=" + b.in(3*time.Hour+time.Minute): 3, "recipient=nobody": 0, "": 7,
		"from=" + url.QueryEscape(b.now().Add(2*time.Hour+time.Minute).In(time.FixedZone("", 7200)).Format(time.RFC3339)) + "&recipient=user-0": 3,
		"from=0001-01-01T00:00:00Z": 7, "until=0001-01-01T00:00:00Z": 0, "page_size=7": 7,
	} {
		r := b.send("GET", "/v1/pushes?"+query, "").must(t, 200)
		if got := r.at(t, "pushes").([]any); len(got) != n || r.at(t, "next_page_token") != "" {
			t.Errorf("%s lists %d pushes, want %d: %s", query, len(got), n, r.text)
		}
	}
}

func TestPushes_OfOtherTenants(t *testing.T) {
	b := setup(t)
	id := b.send("POST", "/v1/pushes", pushBody("user-1", b.in(time.Hour), "")).must(t, 201).at(t, "id").(string)
	theirs := []string{"Authorization", "Bearer " + b.other}
	b.send("GET", "/v1/pushes/"+id, "", theirs...).must(t, 404, "not-found")
	b.send("POST", "/v1/pushes/"+id+"/cancel", "", theirs...).must(t, 404, "not-found")
	b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+b.in(2*time.Hour)+`"}`, theirs...).must(t, 404, "not-found")
	if got := b.send("GET", "/v1/recipients/user-1/slots", "", theirs...).must(t, http.StatusOK).at(t, "bookings").([]any); len(got) != 0 {
		t.Errorf("another tenant sees %v", got)
	}
	if got := b.send("GET", "/v1/pushes/"+id, "").must(t, 200).at(t, "status"); got != "scheduled" {
		t.Errorf("status %v", got)
	}
}
