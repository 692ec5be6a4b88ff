package pushes

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// mustBePlaced checks that errors have a location and a message, and have JSON.
func mustBePlaced(t *testing.T, list invalid.FieldErrors) {
	t.Helper()
	for _, f := range list {
		if f.Field == "" || f.Message == "" || !utf8.ValidString(f.Field+f.Message) || len(f.Field) > 200 || len(f.Message) > 500 {
			t.Errorf("a fault without place or message: %+v", f)
		}
		if text, err := json.Marshal(f); err != nil || len(text) > 4000 {
			t.Errorf("a fault of %d bytes: %v", len(text), err)
		}
	}
}

// FuzzPush holds that a push is at fault, with places, or within all bounds and the same when it is written again.
func FuzzPush(f *testing.F) {
	for _, seed := range []string{
		`{"recipient":"r","message":{}}`, string(exampleRequest), `{"recipient":"","message":[]}`, `{"recipient":"r","message":{"title":1},"to":"\u0000"}`,
		`{"recipient":"r","message":{},"send_at":"2026-12-01t09:00:00.5z"}`, `{"recipient":"r","recipient":"s","message":{"a":1,"a":2}}`, `{"x":1}`, `[]`, `{"recipient":"\ud800","message":{}}`,
		`{"recipient":"r","message":{},"on_conflict":"defer","latest":"9999-12-31T23:59:59Z","metadata":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var (
			got, again        schedule.Request
			found, foundAgain rest.FieldErrors
		)
		if rest.ReadWhole(text, &rest.FieldErrors{}, func(r *rest.Reader) { PushFields.Read(r, &got, &found) }) != nil {
			return
		}
		var all rest.FieldErrors
		all.AddAll("body", found)
		mustBePlaced(t, all.List)
		if len(found.List) > 0 {
			return
		}
		if rest.Unfit(got.Recipient, 1, MaxRecipient) != "" || rest.Unfit(got.Channel, 0, MaxChannel) != "" || rest.Unfit(got.Category, 0, MaxCategory) != "" || rest.Unfit(got.To, 0, MaxTo) != "" ||
			!json.Valid(got.Message) || got.Metadata != nil && !json.Valid(got.Metadata) {
			t.Fatalf("accepted: %+v", got)
		}
		rest.ReadAgain(written(t, got), func(r *rest.Reader) { PushFields.Read(r, &again, &foundAgain) })
		if diff := cmp.Diff(got, again); diff != "" || len(foundAgain.List) > 0 {
			t.Errorf("written again it is another one (-first +second):\n%s\n%+v", diff, foundAgain.List)
		}
	})
}

// written writes a request as a caller would, with message and metadata as they came.
func written(t *testing.T, r schedule.Request) []byte {
	t.Helper()
	b := append([]byte(`{"message":`), r.Message...)
	if r.Metadata != nil {
		b = append(append(b, `,"metadata":`...), r.Metadata...)
	}
	for name, text := range map[string]string{"recipient": r.Recipient, "channel": r.Channel, "category": r.Category, "to": r.To} {
		value, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		b = append(append(b, `,"`+name+`":`...), value...)
	}
	for name, at := range map[string]time.Time{"send_at": r.SendAt, "expires_at": r.ExpiresAt, "latest": r.Latest} {
		if !at.IsZero() {
			b = append(b, `,"`+name+`":"`+at.Format(time.RFC3339Nano)+`"`...)
		}
	}
	if r.Template {
		b = append(b, `,"template":true`...)
	}
	if r.Variables != nil {
		b = append(append(b, `,"variables":`...), r.Variables...)
	}
	if r.Defer {
		b = append(b, `,"on_conflict":"defer"`...)
	}
	return append(b, '}')
}

// FuzzBatch holds that a batch has as many members as its array, or a fault.
func FuzzBatch(f *testing.F) {
	for _, seed := range []string{
		string(exampleBatchRequest), `{"pushes":[]}`, `{"pushes":{}}`, `{"pushes":[1,[],"x"],"atomic":1}`, `{"pushes":[{}],"pushes":[{},{}]}`, `{}`,
		`{"pushes":[` + strings.Repeat(`1,`, maxMembers) + `1]}`, `{"pushes":[{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var (
			b   batchForm
			bad rest.FieldErrors
		)
		if rest.ReadWhole(text, &bad, func(r *rest.Reader) { batchFields.Read(r, &b, &b.FieldErrors) }) != nil {
			return
		}
		for i := range b.found {
			bad.AddAll(place(i), b.found[i])
		}
		bad.AddAll("body", b.FieldErrors)
		mustBePlaced(t, bad.List)
		var plain struct{ Pushes []json.RawMessage }
		if len(b.List) == 0 && json.Unmarshal(text, &plain) == nil && strings.Count(string(text), `ushes"`) == 1 && !bytes.ContainsRune(text, '\\') &&
			len(plain.Pushes) != len(b.pushes) {
			t.Errorf("%d members of %d", len(b.pushes), len(plain.Pushes))
		}
		if len(b.pushes) > maxMembers || len(b.pushes) == 0 && len(b.List) == 0 {
			t.Errorf("%d members, %d faults", len(b.pushes), len(b.List))
		}
	})
}

// decoderSeeds returns the first texts of fuzzing.
func decoderSeeds() []string {
	return []string{
		`{"recipient":"user-42","channel":"push","send_at":"2026-12-01T09:00:00+01:00","message":{"title":"Sale","data":{"any":[1,-2.5e+3,true,null]}},"metadata":{}}`,
		`{"pushes":[{"recipient":"a","message":{}},{"recipient":1}],"atomic":true}`,
		`{"send_at":"2026-12-01t09:00:00z","x":"\u0041\n\ud83d\ude00\ud800"}`,
		`[]`, `{}`, ``, `"a`, `{"a":}`, `[1,]`, `01`, `nul`, `"\x"`, `{"a":1}}`, "\xff", "\xef\xbb\xbf{}",
		strings.Repeat("[", 102) + strings.Repeat("]", 102), strings.Repeat(`{"a":`, 300), "{\x00}", `{"a":1,}`, `{"\u0061":1}`,
	}
}

// FuzzDecode feeds the decoders. They must not panic; what a form holds must be within its bounds; and what they find
// wrong must be shown as JSON.
func FuzzDecode(f *testing.F) {
	for _, s := range decoderSeeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !utf8.Valid(text) {
			return
		}
		for _, of := range []*rest.Table[schedule.Request]{&PushFields, &moveFields, &checkFields} {
			rest.ReadAgain(text, func(r *rest.Reader) {
				var (
					p     schedule.Request
					found rest.FieldErrors
				)
				of.Read(r, &p, &found)
				checkForm(t, r, p, found)
			})
		}
		rest.ReadAgain(text, func(r *rest.Reader) {
			var b batchForm
			batchFields.Read(r, &b, &b.FieldErrors)
			for i, one := range b.pushes {
				checkForm(t, r, one, b.found[i])
			}
		})
	})
}

func checkForm(t *testing.T, r *rest.Reader, p schedule.Request, found rest.FieldErrors) {
	t.Helper()
	if rest.Unfit(p.Recipient, 0, MaxRecipient)+rest.Unfit(p.Channel, 0, MaxChannel)+rest.Unfit(p.Category, 0, MaxCategory)+rest.Unfit(p.To, 0, MaxTo) != "" {
		t.Errorf("an unfit text: %+v", p)
	}
	if r.Err == nil && (p.Message != nil && !json.Valid(p.Message) || p.Metadata != nil && !json.Valid(p.Metadata)) {
		t.Errorf("no JSON: %s %s", p.Message, p.Metadata)
	}
	if _, err := json.Marshal(found.List); err != nil {
		t.Errorf("faults are no JSON: %v", err)
	}
}

// TestForm_DuplicateMembers: the last one counts.
func TestForm_DuplicateMembers(t *testing.T) {
	var (
		p     schedule.Request
		found rest.FieldErrors
	)
	rest.ReadAgain([]byte(`{"recipient":"a","recipient":"b","message":{},"message":{"body":"x"}}`), func(r *rest.Reader) { PushFields.Read(r, &p, &found) })
	if len(found.List) > 0 || p.Recipient != "b" || string(p.Message) != `{"body":"x"}` {
		t.Errorf("%+v %+v", p, found)
	}
}
