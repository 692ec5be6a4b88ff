package pushes

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// TestAppendJSON: an answer that writes itself is what encoding/json would write, for whatever it holds.
func TestAppendJSON(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~\x00-\x1f]*`), rapid.SampledFrom([]string{"", "user-42", "<b>&amp;\"\\", "bad \xff UTF-8", "\u2028"}))
	object := rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{}`), json.RawMessage(" { \"a b\" : [ 1 , \"<x>\\n\u00e9\" ],\n\"c\":null }\t")})
	some := func(t *rapid.T, name string) *string {
		if !rapid.Bool().Draw(t, "has "+name) {
			return nil
		}
		return new(text.Draw(t, name))
	}
	aPush := rapid.Custom(func(t *rapid.T) *pushView {
		draw := func(name string) string { return text.Draw(t, name) }
		v := &pushView{
			ID: draw("id"), Status: push.Status(draw("status")), Recipient: draw("recipient"), Channel: draw("channel"), Category: draw("category"),
			SendAt: draw("send_at"), RequestedSendAt: draw("requested_send_at"), Deferred: rapid.Bool().Draw(t, "deferred"), NextAttemptAt: draw("next_attempt_at"),
			ExpiresAt: draw("expires_at"), Attempts: rapid.Int().Draw(t, "attempts"), To: draw("to"), Message: rest.RawObject(object.Draw(t, "message")), Metadata: rest.RawObject(object.Draw(t, "metadata")),
			LastError: draw("last_error"), PossiblyDelivered: rapid.Bool().Draw(t, "possibly_delivered"), RequestID: draw("request_id"), CreatedAt: draw("created_at"),
			UpdatedAt: draw("updated_at"), Sends: make([]sendView, rapid.IntRange(0, 2).Draw(t, "sends")),
		}
		for i := range v.Sends {
			v.Sends[i] = sendView{Attempt: i, StartedAt: draw("started_at"), EndedAt: some(t, "ended_at"), Outcome: some(t, "outcome"), Error: draw("error")}
		}
		if rapid.Bool().Draw(t, "has quota") {
			v.Quota = make([]usageView, rapid.IntRange(0, 2).Draw(t, "quota"))
		}
		for i := range v.Quota {
			seconds := rapid.SampledFrom([]float64{0, 0.001, 0.5, 60, 86400, 31_536_000}).Draw(t, "window_seconds")
			v.Quota[i] = usageView{Rule: draw("rule"), Limit: rapid.Int().Draw(t, "limit"), WindowSeconds: seconds, Used: i, Remaining: -i}
		}
		return v
	})
	aRefusal := rapid.Custom(func(t *rapid.T) *quotaProblem {
		p := &quotaProblem{
			Problem:    rest.Problem{Type: text.Draw(t, "type"), Title: text.Draw(t, "title"), Status: 409, Detail: text.Draw(t, "detail")},
			Violations: make([]violationView, rapid.IntRange(0, 2).Draw(t, "violations")), NextAvailableAt: some(t, "next"), PreviousAvailableAt: some(t, "previous"),
		}
		for i := range p.Violations {
			p.Violations[i] = violationView{
				Rule: text.Draw(t, "rule"), Limit: i, WindowSeconds: 0.5, Conflicts: make([]conflictView, rapid.IntRange(0, 2).Draw(t, "conflicts")),
				Omitted: rapid.IntRange(0, 1).Draw(t, "omitted"), Per: rapid.SampledFrom([]string{"", "week"}).Draw(t, "per"),
				Until: some(t, "until"),
			}
			for j := range p.Violations[i].Conflicts {
				p.Violations[i].Conflicts[j] = conflictView{ID: text.Draw(t, "id"), SendAt: text.Draw(t, "send_at")}
			}
		}
		return p
	})
	result := rapid.Custom(func(t *rapid.T) resultView {
		v := resultView{Index: rapid.Int().Draw(t, "index"), Status: rapid.Int().Draw(t, "code"), Replayed: rapid.Bool().Draw(t, "replayed")}
		if rapid.Bool().Draw(t, "booked") {
			v.Push = aPush.Draw(t, "push")
		} else if v.Problem = aRefusal.Draw(t, "refusal"); rapid.Bool().Draw(t, "faulty") {
			v.Problem = &rest.Problem{Title: text.Draw(t, "title"), Status: 409}
		}
		return v
	})
	rapid.Check(t, func(t *rapid.T) {
		for _, v := range []rest.Appender{
			aPush.Draw(t, "push"), aRefusal.Draw(t, "refusal"),
			pageView{Pushes: rapid.SliceOfN(aPush, 0, 3).Draw(t, "pushes"), NextPageToken: text.Draw(t, "token")},
			batchView{Accepted: rapid.Int().Draw(t, "accepted"), Refused: 1, Results: rapid.SliceOfN(result, 0, 3).Draw(t, "results")},
		} {
			got := append(v.AppendJSON(nil), '\n')
			if want := usualJSON(t, v); !bytes.Equal(readable(t, got), readable(t, want)) {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

// usualJSON returns the JSON of encoding/json, which always has a trailing line break.
func usualJSON(t *rapid.T, v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readable writes the escapes in texts in one way: JSON has several.
func readable(t *rapid.T, text []byte) []byte {
	b := &bytes.Buffer{}
	e := json.NewEncoder(b)
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		d.UseNumber()
		token, err := d.Token()
		if err != nil {
			return append(b.Bytes(), text[d.InputOffset():]...)
		}
		if delim, ok := token.(json.Delim); ok {
			token = delim.String()
		}
		if err := e.Encode(token); err != nil {
			t.Fatal(err)
		}
	}
}
