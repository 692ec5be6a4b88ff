package rest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// seeds returns the first texts of fuzzing.
func seeds() []string {
	return []string{
		`{"recipient":"user-42","channel":"push","send_at":"2026-12-01T09:00:00+01:00","message":{"title":"Sale","data":{"any":[1,-2.5e+3,true,null]}},"metadata":{}}`,
		`{"pushes":[{"recipient":"a","message":{}},{"recipient":1}],"atomic":true}`,
		`{"send_at":"2026-12-01t09:00:00z","x":"\u0041\n\ud83d\ude00\ud800"}`,
		`[]`, `{}`, ``, ` `, `"a`, `{"a":}`, `{"a" 1}`, `[1,]`, `01`, `-`, `1.`, `1e`, `tru`, `nul`, "\"\x01\"", `"\x"`, `"\u12"`, `{"a":1}}`, "\xff", "\xef\xbb\xbf{}",
		strings.Repeat("[", 102) + strings.Repeat("]", 102), strings.Repeat(`{"a":`, 300), "\x00", "{\x00}", `{"a":1,}`, `{,}`, `[`, `{"\u0061":1}`,
	}
}

// readsAll reports whether the reader takes a text as one JSON value, and whether that is nested too deep to be looked
// at closely.
func readsAll(text []byte) (ok, deep bool) {
	r := newReader(text)
	r.Value()
	r.End()
	return r.Err == nil, r.deep
}

// FuzzReader holds the reader to encoding/json: both take the same texts.
func FuzzReader(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ok, deep := readsAll(text)
		if !deep && utf8.Valid(text) && ok != json.Valid(text) {
			t.Errorf("the reader takes it: %v, encoding/json: %v: %q", ok, json.Valid(text), text)
		}
	})
}

// TestReader_Deep reads a body of nothing but brackets.
func TestReader_Deep(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", MaxBatchBody), strings.Repeat(`{"a":`, MaxBatchBody/5)} {
		if ok, _ := readsAll([]byte(text)); ok {
			t.Error("an open text is taken")
		}
	}
	for levels, want := range map[int]bool{maxDepth: false, maxDepth + 1: true, 9000: true} {
		text := strings.Repeat("[", levels) + strings.Repeat("]", levels)
		if ok, deep := readsAll([]byte(text)); !ok || deep != want {
			t.Errorf("%d levels: ok %v, deep %v", levels, ok, deep)
		}
	}
}

// FuzzRequestHash: a body has the hash of what encoding/json makes of it.
func FuzzRequestHash(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if ok, deep := readsAll(text); !ok || deep || !utf8.Valid(text) || !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
			return
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		sorted, err := json.MarshalIndent(v, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(RequestHash("r", text), RequestHash("r", sorted)) {
			t.Errorf("%s and %s have different hashes", text, sorted)
		}
	})
}

func TestRequestHash(t *testing.T) {
	base := RequestHash("/v1/pushes", []byte(`{"a":1,"b":{"c":[1,2],"d":"x"}}`))
	for text, same := range map[string]bool{
		"{ \"b\" : {\"d\":\"\\u0078\",\"c\":[1, 2]},\n\"a\":1}": true,
		`{"a":1,"b":{"c":[2,1],"d":"x"}}`:                       false,
		`{"a":1.0,"b":{"c":[1,2],"d":"x"}}`:                     false,
		`{"a":1,"b":{"c":[1,2],"d":"x"},"e":null}`:              false,
	} {
		if got := bytes.Equal(base, RequestHash("/v1/pushes", []byte(text))); got != same {
			t.Errorf("%s: same %v, want %v", text, got, same)
		}
	}
	if bytes.Equal(base, RequestHash("/v1/pushes/batch", []byte(`{"a":1,"b":{"c":[1,2],"d":"x"}}`))) {
		t.Error("the route makes no difference")
	}
	big := RequestHash("r", []byte(`{"n":12345678901234567890}`))
	if bytes.Equal(big, RequestHash("r", []byte(`{"n":12345678901234567891}`))) {
		t.Error("large numbers are taken for equal")
	}
}
