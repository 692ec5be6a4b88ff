package httpapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/schedule"
)

// mustBePlaced wants faults that say where and what, and can be sent.
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
		var got, again form
		if readWhole(text, &fieldErrors{}, func(r *reader) { got.read(r, &pushFields) }) != nil {
			return
		}
		var all fieldErrors
		all.addAll("body", got.fieldErrors)
		mustBePlaced(t, all.list)
		if len(got.list) > 0 {
			return
		}
		if unfit(got.Recipient, 1, maxRecipient) != "" || unfit(got.Channel, 0, maxChannel) != "" || unfit(got.Category, 0, maxCategory) != "" || unfit(got.To, 0, maxTo) != "" ||
			!json.Valid(got.Message) || got.Metadata != nil && !json.Valid(got.Metadata) {
			t.Fatalf("accepted: %+v", got.Request)
		}
		readAgain(written(t, got.Request), func(r *reader) { again.read(r, &pushFields) })
		if diff := cmp.Diff(got.Request, again.Request); diff != "" || len(again.list) > 0 {
			t.Errorf("written again it is another one (-first +second):\n%s\n%+v", diff, again.list)
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
			bad fieldErrors
		)
		if readWhole(text, &bad, func(r *reader) { batchFields.read(r, &b, &b.fieldErrors) }) != nil {
			return
		}
		for i := range b.forms {
			bad.addAll(place(i), b.forms[i].fieldErrors)
		}
		bad.addAll("body", b.fieldErrors)
		mustBePlaced(t, bad.list)
		var plain struct{ Pushes []json.RawMessage }
		if len(b.list) == 0 && json.Unmarshal(text, &plain) == nil && strings.Count(string(text), `ushes"`) == 1 && !bytes.ContainsRune(text, '\\') &&
			len(plain.Pushes) != len(b.forms) {
			t.Errorf("%d members of %d", len(b.forms), len(plain.Pushes))
		}
		if len(b.forms) > maxMembers || len(b.forms) == 0 && len(b.list) == 0 {
			t.Errorf("%d members, %d faults", len(b.forms), len(b.list))
		}
	})
}

// decoderSeeds are texts from which fuzzing starts.
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
		for _, of := range []*table[form]{&pushFields, &moveFields, &checkFields} {
			readAgain(text, func(r *reader) {
				var f form
				f.read(r, of)
				checkForm(t, r, f)
			})
		}
		readAgain(text, func(r *reader) {
			var b batchForm
			batchFields.read(r, &b, &b.fieldErrors)
			for _, one := range b.forms {
				checkForm(t, r, one)
			}
		})
	})
}

func checkForm(t *testing.T, r *reader, f form) {
	t.Helper()
	if unfit(f.Recipient, 0, maxRecipient)+unfit(f.Channel, 0, maxChannel)+unfit(f.Category, 0, maxCategory)+unfit(f.To, 0, maxTo) != "" {
		t.Errorf("an unfit text: %+v", f.Request)
	}
	if r.err == nil && (f.Message != nil && !json.Valid(f.Message) || f.Metadata != nil && !json.Valid(f.Metadata)) {
		t.Errorf("no JSON: %s %s", f.Message, f.Metadata)
	}
	if _, err := json.Marshal(f.list); err != nil {
		t.Errorf("faults are no JSON: %v", err)
	}
}

// TestForm_DuplicateMembers: the last one counts.
func TestForm_DuplicateMembers(t *testing.T) {
	var f form
	readAgain([]byte(`{"recipient":"a","recipient":"b","message":{},"message":{"body":"x"}}`), func(r *reader) { f.read(r, &pushFields) })
	if len(f.list) > 0 || f.Recipient != "b" || string(f.Message) != `{"body":"x"}` {
		t.Errorf("%+v", f)
	}
}
