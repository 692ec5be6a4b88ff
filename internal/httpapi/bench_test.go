package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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

// BenchmarkAnswers writes the largest answers by hand, as it is done, and as encoding/json and its second version would.
func BenchmarkAnswers(b *testing.B) {
	batch, page := batchView{Accepted: maxMembers, Results: make([]resultView, maxMembers)}, pageView{Pushes: make([]*pushView, 500)}
	for i := range batch.Results {
		batch.Results[i] = resultView{Index: i, Status: 201, Push: examplePush(push.Scheduled)}
	}
	for i := range page.Pushes {
		page.Pushes[i] = examplePush(push.Scheduled)
	}
	slack := make([]byte, 64<<20) // as in BenchmarkSubmits
	defer runtime.KeepAlive(slack)
	for _, answer := range []struct {
		name   string
		pushes int
		view   appender
	}{{"batch of 1000", maxMembers, batch}, {"page of 500", len(page.Pushes), page}} {
		run := func(name string, write func(e *encoder) error) {
			b.Run(answer.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					e := newEncoders().pool.Get().(*encoder)
					e.text = make([]byte, 0, answer.pushes*usualPush)
					if err := write(e); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(answer.pushes*b.N), "cpu-ns/push")
			})
		}
		run("by hand", func(e *encoder) error { e.text = answer.view.appendJSON(e.text); return nil })
		run("version 1", func(e *encoder) error { return e.json.Encode(answer.view) })
		run("version 2", func(e *encoder) error { return jsonv2.MarshalWrite(e, answer.view, jsontext.AllowInvalidUTF8(true)) })
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
