package internal_test

import (
	"context"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/telemetry"
)

// TestOperations_NamesEveryMetric: the table in docs/operations.md has every metric of ours once, with its labels, and no
// other.
func TestOperations_NamesEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	name := regexp.MustCompile("`(sendquota_[a-z_]+(?:\\{[a-z,]+\\})?)`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || !strings.HasPrefix(cells[0], "| `sendquota_") {
			continue
		}
		for _, n := range name.FindAllStringSubmatch(cells[0], -1) {
			documented = append(documented, n[1])
		}
	}
	slices.Sort(documented)
	if diff := cmp.Diff(served(t), documented); diff != "" {
		t.Errorf("metrics (-served +documented):\n%s", diff)
	}
}

// served are the metrics that /metrics shows when everything has happened once.
func served(t *testing.T) (metrics []string) {
	t.Helper()
	m := telemetry.NewMetrics()
	happen(m)
	fine := func(context.Context) error { return nil }
	m.Watch(telemetry.Gauges{
		Backlog:    func(context.Context) (int, time.Duration, error) { return 0, 0, nil },
		PutOff:     func(context.Context) (int, error) { return 0, nil },
		Paused:     func(context.Context) (map[string]int, error) { return map[string]int{"sms": 0}, nil },
		QueueSizes: func() (map[string]int, error) { return map[string]int{"pending": 0}, nil },
		Webhooks:   func(context.Context) (int, time.Duration, int, error) { return 0, 0, 0, nil },
		Campaigns:  func(context.Context) (map[string]int, error) { return map[string]int{"running": 0}, nil },
		Pauses:     func(context.Context) (map[string]int, error) { return map[string]int{"all": 0}, nil },
		Rates: func(_ context.Context, each func(string, int, int, int)) error {
			each("sms", 0, 0, 0)
			return nil
		},
		Postgres: fine, Redis: fine,
		Polling:    func() bool { return false },
		Partitions: func(each func(string, time.Time, time.Time)) { each("pushes", time.Time{}, time.Time{}) },
		Channels:   func(each func(string, int, time.Duration, int)) { each("sms", 0, 0, 0) },
	})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	label := regexp.MustCompile(`(\w+)="`)
	for _, typed := range regexp.MustCompile(`(?m)^# TYPE (sendquota_\w+)`).FindAllStringSubmatch(text, -1) {
		sample := regexp.MustCompile(`(?m)^` + typed[1] + `(?:_count)?(\{.*\})? `).FindStringSubmatch(text)
		var labels []string
		for _, l := range label.FindAllStringSubmatch(sample[1], -1) {
			labels = append(labels, l[1])
		}
		if labels == nil {
			metrics = append(metrics, typed[1])
			continue
		}
		metrics = append(metrics, typed[1]+"{"+strings.Join(labels, ",")+"}")
	}
	slices.Sort(metrics)
	return metrics
}

// happen calls every method that records something, also one that is added
// tomorrow: a metric with labels is not shown before.
func happen(m *telemetry.Metrics) {
	v := reflect.ValueOf(m)
	for i := range v.NumMethod() {
		if name := v.Type().Method(i).Name; name == "Watch" || name == "Handler" {
			continue
		}
		method := v.Method(i)
		var args []reflect.Value
		for n := range method.Type().NumIn() {
			arg := reflect.New(method.Type().In(n)).Elem()
			switch arg.Kind() {
			case reflect.Bool:
				arg.SetBool(true)
			case reflect.Map:
				arg.Set(reflect.MakeMap(arg.Type()))
				arg.SetMapIndex(reflect.Zero(arg.Type().Key()), reflect.Zero(arg.Type().Elem()))
			}
			args = append(args, arg)
		}
		method.Call(args)
	}
}
