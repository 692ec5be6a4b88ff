package httpapi

import (
	"strings"
	"testing"
	"time"
)

// TestPush_Template: the message is rendered with what is given and what is stored, and kept as it was rendered.
func TestPush_Template(t *testing.T) {
	b := setup(t)
	b.send("PUT", "/v1/recipients/a", `{"attributes":{"name":"stored","plan":"gold","n":12345678901234567890}}`).must(t, 201)
	body := func(recipient, more string) string {
		return `{"recipient":"` + recipient + `","send_at":"` + b.in(time.Hour) + `","to":"+45","template":true,"message":{"title":"{{ name }}\nof {{ recipient }}","body":"{{ plan }} {{ n }} {{ to }}","x":1.50,"html":"{{ name }}"}` + more + `}`
	}
	const want = `"message":{"title":"<b> of a","body":"gold 12345678901234567890 +45","x":1.50,"html":"&lt;b&gt;"}`
	first := body("a", `,"variables":{"name":"<b>","recipient":"x"}`)
	r := b.send("POST", "/v1/pushes", first, "Idempotency-Key", "k").must(t, 201)
	if !strings.Contains(r.text, want) {
		t.Errorf("%s, want %s", r.text, want)
	}
	id := r.at(t, "id").(string)
	if got := b.send("GET", "/v1/pushes/"+id, "").must(t, 200); !strings.Contains(got.text, want) {
		t.Errorf("%s, want %s", got.text, want)
	}
	// A repetition gets the same push, whatever is known of the recipient now.
	b.send("PUT", "/v1/recipients/a", `{}`).must(t, 200)
	if again := b.send("POST", "/v1/pushes", first, "Idempotency-Key", "k").must(t, 201); again.at(t, "id") != id || !strings.Contains(again.text, want) {
		t.Error(again.text)
	}
	b.send("POST", "/v1/pushes", strings.Replace(first, "<b>", "<i>", 1), "Idempotency-Key", "k").must(t, 422, "idempotency-key-reused")

	for name, tt := range map[string]struct{ body, want string }{
		"unknown":   {body("b", `,"variables":{"name":"x"}`), `"location":"body.message.body","message":"there is no variable plan; the filter default gives a value for that"`},
		"no Liquid": {`{"recipient":"b","template":true,"message":{"title":"{{ a","data":["{% include 'x' %}"]},"channel":"fax"}`, `[{"location":"body.message.title","message":"line 1: {{ is not closed by }}"},{"location":"body.message.data[0]","message":"line 1: include is not supported: a message has no other templates"},{"location":"body.channel"`},
		"alone":     {`{"recipient":"b","message":{},"variables":{"a":"secret"}}`, `"location":"body.variables","message":"must not be given without template"`},
		"no":        {`{"recipient":"b","template":false,"message":{},"variables":{}}`, `"location":"body.variables"`},
		"kinds":     {`{"recipient":"b","template":"yes","message":{},"variables":[]}`, `{"location":"body.template","message":"must be true or false","value":"yes"},{"location":"body.variables","message":"must be an object"`},
		"for ever":  {`{"recipient":"b","template":true,"message":{"body":"{% for i in (1..1000000000) %}{% endfor %}"}}`, `"location":"body.message.body","message":"it takes too long`},
	} {
		t.Run(name, func(t *testing.T) {
			if r := b.send("POST", "/v1/pushes", tt.body).must(t, 422, "invalid-request"); !strings.Contains(r.text, tt.want) {
				t.Errorf("%s lacks %s", r.text, tt.want)
			}
		})
	}
	// A push without an address has no such variable of its own.
	b.send("PUT", "/v1/recipients/d", `{"attributes":{"to":"stored"}}`).must(t, 201)
	for more, want := range map[string]string{`"recipient":"d"`: `"stored"`, `"recipient":"d","variables":{"to":"own"}`: `"own"`, `"recipient":"d","to":"+45","variables":{"to":"own"}`: `"+45"`} {
		if r := b.send("POST", "/v1/pushes?validate_only=true", `{`+more+`,"template":true,"message":{"body":"{{ to }}"}}`).must(t, 201); !strings.Contains(r.text, want) {
			t.Errorf("%s lacks %s", r.text, want)
		}
	}
	// Without it, nothing is a template.
	if r := b.send("POST", "/v1/pushes", `{"recipient":"c","message":{"body":"{{ x"}}`).must(t, 201); !strings.Contains(r.text, `{"body":"{{ x"}`) {
		t.Error(r.text)
	}
	if n := query[int](b, `SELECT count(*) FROM pushes`); n != 2 {
		t.Errorf("%d pushes", n)
	}
}

// TestPush_TemplateNow: now is the time of the sending, in the recipient's zone, also when that time is moved.
func TestPush_TemplateNow(t *testing.T) {
	b := setup(t)
	b.send("PUT", "/v1/recipients/a", `{"time_zone":"Pacific/Kiritimati"}`).must(t, 201)
	day := time.Now().UTC().AddDate(0, 0, 3).Truncate(24 * time.Hour)
	shows := func(r reply, want string) {
		t.Helper()
		if got := r.at(t, "message", "body"); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	body := func(recipient, when string) string {
		return `{"recipient":"` + recipient + `","template":true,"message":{"body":"{{ 'now' | date: '%F %H:%M' }}"},` + when + `}`
	}
	at := func(t time.Time) string { return t.Format(time.RFC3339) }
	const form = "2006-01-02 15:04"
	r := b.send("POST", "/v1/pushes", body("a", `"send_at":"`+at(day.Add(11*time.Hour))+`"`)).must(t, 201)
	shows(r, day.AddDate(0, 0, 1).Add(time.Hour).Format(form)) // 14 hours ahead of UTC
	id := r.at(t, "id").(string)
	shows(b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+at(day.Add(31*time.Hour))+`"}`).must(t, 200), day.AddDate(0, 0, 1).Add(21*time.Hour).Format(form))
	shows(b.send("GET", "/v1/pushes/"+id, "").must(t, 200), day.AddDate(0, 0, 1).Add(21*time.Hour).Format(form))
	shows(b.send("POST", "/v1/pushes", body("b", `"send_at":"`+at(day)+`"`)).must(t, 201), day.Format(form))
	shows(b.send("POST", "/v1/pushes", body("c", `"local_time":"`+day.Add(9*time.Hour).Format("2006-01-02T15:04:05")+`","time_zone":"Asia/Tokyo"`)).must(t, 201), day.Format(form))
	b.exec(`UPDATE pushes SET status = 'sent', updated_at = '2020-01-02 03:04:05Z' WHERE id = $1`, id)
	for _, answer := range []reply{b.send("POST", "/v1/pushes/"+id+"/cancel", "").must(t, 409, "not-cancelable"),
		b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+at(day)+`"}`).must(t, 409, "not-reschedulable"),
		b.send("POST", "/v1/pushes/"+id+"/retry", "").must(t, 409, "not-retryable")} {
		if got := answer.at(t, "push", "message", "body"); got != "2020-01-02 17:04" {
			t.Errorf("%v: %s", got, answer.text)
		}
	}
	if n := query[int](b, `SELECT count(*) FROM pushes WHERE rendering IS NOT NULL`); n != 3 {
		t.Errorf("%d pushes can be made again", n)
	}
}

// TestBatch_Template: each member is rendered with the attributes of its own recipient.
func TestBatch_Template(t *testing.T) {
	b := setup(t)
	b.send("PUT", "/v1/recipients/a", `{"attributes":{"name":"A"}}`).must(t, 201)
	b.send("PUT", "/v1/recipients/b", `{"attributes":{"name":"B"}}`).must(t, 201)
	b.send("PUT", "/v1/recipients/c", `{"attributes":{"name":"C"}}`, "Authorization", "Bearer "+b.other).must(t, 201)
	member := func(recipient string) string {
		return `{"recipient":"` + recipient + `","template":true,"message":{"body":"Hi {{ name }}"}}`
	}
	r := b.send("POST", "/v1/pushes/batch", `{"pushes":[`+member("a")+`,`+member("b")+`,`+member("c")+`]}`).must(t, 200)
	if r.at(t, "accepted") != 2.0 || r.at(t, "results", 0, "push", "message", "body") != "Hi A" || r.at(t, "results", 1, "push", "message", "body") != "Hi B" ||
		!strings.Contains(r.text, `there is no variable name`) {
		t.Error(r.text)
	}
}

// TestSchedules_Template: the pattern of a schedule keeps its templates, and is checked as a push is.
func TestSchedules_Template(t *testing.T) {
	b := setup(t)
	r := b.send("POST", "/v1/schedules", `{"cron":"@daily","push":{"recipient":"a","template":true,"variables":{"name":"A"},"message":{"body":"Hi {{ name }}"}}}`).must(t, 201)
	got := b.send("GET", "/v1/schedules/"+r.at(t, "id").(string), "").must(t, 200)
	if want := `"message":{"body":"Hi {{ name }}"},"template":true,"variables":{"name":"A"}`; !strings.Contains(got.text, want) {
		t.Errorf("%s lacks %s", got.text, want)
	}
	wrong := b.send("POST", "/v1/schedules", `{"cron":"@never","push":{"recipient":"a","template":true,"message":{"body":"Hi {{ name"}}}`).must(t, 422, "invalid-request")
	if !strings.Contains(wrong.text, `"body.push.message.body"`) || !strings.Contains(wrong.text, `"body.cron"`) {
		t.Error(wrong.text)
	}
	b.send("POST", "/v1/schedules", `{"cron":"@daily","push":{"recipient":"a","template":true,"message":{"body":"Hi {{ name"}}}`).must(t, 422, "invalid-request")
	b.send("POST", "/v1/schedules", `{"cron":"@daily","push":{"recipient":"a","variables":{},"message":{}}}`).must(t, 422, "invalid-request")
}
