package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
)

func BenchmarkDecodeSubmit(b *testing.B) {
	body := exampleRequest
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var f form
		if err := readWhole(body, &fieldErrors{}, func(r *reader) { f.read(r, &pushFields) }); err != nil || len(f.list) > 0 {
			b.Fatal(err, f.list)
		}
	}
}

func batchOf1000() []byte {
	members := make([]string, maxMembers)
	for i := range members {
		members[i] = strings.Replace(string(exampleRequest), "user-42", fmt.Sprintf("user-%d", i), 1)
	}
	return []byte(`{"pushes":[` + strings.Join(members, ",") + `]}`)
}

func BenchmarkDecodeBatch1000(b *testing.B) {
	body := batchOf1000()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var batch batchForm
		err := readWhole(body, &fieldErrors{}, func(r *reader) { batchFields.read(r, &batch, &batch.fieldErrors) })
		if err != nil || len(batch.forms) != maxMembers || len(batch.forms[0].list) > 0 {
			b.Fatal("not read")
		}
	}
}

func BenchmarkRequestHash(b *testing.B) {
	body := exampleRequest
	b.ReportAllocs()
	for b.Loop() {
		requestHash(submitPath, body)
	}
}

func BenchmarkAnswerPush(b *testing.B) {
	a := &api{encoders: newEncoders()}
	result := schedule.Result{Push: push.Push{Message: json.RawMessage(`{"title":"Sale","body":"Everything must go."}`), Recipient: "user-42"}}
	b.ReportAllocs()
	for b.Loop() {
		rec := &responseRecorder{ResponseWriter: discard{header: http.Header{}}, stopping: func() bool { return false }}
		if err := a.answer(rec, 201, bookedView(result)); err != nil {
			b.Fatal(err)
		}
		a.finish(rec)
	}
}

func BenchmarkAnswerBatch1000(b *testing.B) {
	v := batchView{Accepted: maxMembers, Results: make([]resultView, maxMembers)}
	for i := range v.Results {
		v.Results[i] = resultView{Index: i, Status: 201, Push: examplePush(push.Scheduled)}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newEncoders().get(v); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkOverhead is what a request costs without its work: all but the schedule, for a request with a known key and
// a faulty query.
func BenchmarkOverhead(b *testing.B) {
	h := New(nil, everything{}, Config{})
	r := httptest.NewRequest("GET", "/v1/pushes?x=1", nil)
	r.Header.Set("Authorization", "Bearer key")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discard{header: http.Header{}}, r)
	}
}
