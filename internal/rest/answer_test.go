package rest

import (
	"net/http"
	"strings"
	"testing"
)

// writtenView is a view that writes itself.
type writtenView struct{ text string }

func (v writtenView) AppendJSON(b []byte) []byte { return append(b, v.text...) }

type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}

// BenchmarkAnswer sends a short answer.
func BenchmarkAnswer(b *testing.B) {
	a := &API{encoders: newEncoders()}
	v := writtenView{`{"message":"` + strings.Repeat("x", 600) + `"}`}
	b.ReportAllocs()
	for b.Loop() {
		rec := &responseRecorder{ResponseWriter: nowhere{header: http.Header{}}, stopping: func() bool { return false }}
		if err := a.stage(rec, 201, "application/json", v); err != nil {
			b.Fatal(err)
		}
		a.finish(rec)
	}
}
