package pushes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

func BenchmarkDecodeSubmit(b *testing.B) {
	body := exampleRequest
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var (
			p     schedule.Request
			found rest.FieldErrors
		)
		if err := rest.ReadWhole(body, &rest.FieldErrors{}, func(r *rest.Reader) { PushFields.Read(r, &p, &found) }); err != nil || len(found.List) > 0 {
			b.Fatal(err, found.List)
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
		err := rest.ReadWhole(body, &rest.FieldErrors{}, func(r *rest.Reader) { batchFields.Read(r, &batch, &batch.FieldErrors) })
		if err != nil || len(batch.pushes) != maxMembers || len(batch.found[0].List) > 0 {
			b.Fatal("not read")
		}
	}
}

func BenchmarkRequestHash(b *testing.B) {
	body := exampleRequest
	b.ReportAllocs()
	for b.Loop() {
		rest.RequestHash(submitPath, body)
	}
}

// BenchmarkAnswerPush shows and writes the answer to a submit.
func BenchmarkAnswerPush(b *testing.B) {
	result := booking.Decision{Push: push.Push{Content: push.Content{Message: json.RawMessage(`{"title":"Sale","body":"Everything must go."}`), Recipient: "user-42"}}}
	text := make([]byte, 0, 4*usualPush)
	b.ReportAllocs()
	for b.Loop() {
		text = bookedView(nil, &result).AppendJSON(text[:0])
	}
}

// BenchmarkAnswers writes the largest answers by hand, as the API does, and with encoding/json and its second version.
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
		view   rest.Appender
	}{{"batch of 1000", maxMembers, batch}, {"page of 500", len(page.Pushes), page}} {
		run := func(name string, write func(text []byte) error) {
			b.Run(answer.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					if err := write(make([]byte, 0, answer.pushes*usualPush)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(answer.pushes*b.N), "cpu-ns/push")
			})
		}
		run("by hand", func(text []byte) error { _ = answer.view.AppendJSON(text); return nil })
		run("version 1", func(text []byte) error {
			e := json.NewEncoder(bytes.NewBuffer(text))
			e.SetEscapeHTML(false)
			return e.Encode(answer.view)
		})
		run("version 2", func(text []byte) error {
			return jsonv2.MarshalWrite(bytes.NewBuffer(text), answer.view, jsontext.AllowInvalidUTF8(true))
		})
	}
}

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
