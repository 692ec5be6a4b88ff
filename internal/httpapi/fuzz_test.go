package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
)

// FuzzAPI holds that no request at all makes the API fail unforeseen, and that what it answers is JSON with its
// hardening.
func FuzzAPI(f *testing.F) {
	for _, seed := range [][4]string{{"POST", "/v1/pushes", "", "{"}, {"POST", "/v1/pushes/batch", "atomic=1", `{"pushes":[]}`}, {"PATCH", "/v1/pushes/" + rest.ExampleID, "", `{"send_at":1}`},
		{"GET", "/v1/recipients/%2f/slots", "from=x", ""}, {"GET", "/v1/pushes/%zz", "", ""}, {"BREW", "/../v1", "%", "\xff"}, {"POST", "/v1/quota/check", "", `{"recipient":""}`}} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	for _, seed := range [][4]string{
		{"POST", "/v1/schedules", "", `{"name": "Monday digest", "cron": "0 9 * * MON", "time_zone": "Europe/Berlin", "push": {"recipient": "user-42", "message": {"title": "Your week"}, "expires_after": "4h"}}`}, {"POST", "/v1/schedules", "", `{"cron":"TZ= ","time_zone":"","push":{"send_at":1},"campaign":1,"until":null}`},
		{"PATCH", "/v1/schedules/" + rest.ExampleID, "", `{"push":[],"cron":"@every"}`}, {"GET", "/v1/schedules/" + rest.ExampleID + "/next", "n=-1", ""}, {"GET", "/v1/schedules", "page_token=AAAA", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	service := nothingBooked(f)
	api := New(service, everything{}, Config{
		Schedules: recurring.New(noPostgres(f), service, time.Now, recurring.Config{}), Campaigns: campaignsOf(noPostgres(f), time.Now),
	})
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Method, r.URL, r.Header = method, &url.URL{Path: path, RawQuery: query}, http.Header{"Authorization": {"Bearer k"}}
		rec := httptest.NewRecorder()
		api.ServeHTTP(rec, r)
		if rec.Code == http.StatusInternalServerError || rec.Code == 0 {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		if h := rec.Header(); strings.Contains(h.Get("Content-Type"), "json") && rec.Body.Len() > 0 && !json.Valid(rec.Body.Bytes()) || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%v %s", h, rec.Body)
		}
	})
}

// nothingBooked returns a service without Postgres: requests that reach it are answered with 503.
func nothingBooked(f *testing.F) *schedule.Service {
	b := &bundle{}
	b.rdb = deadRedis(f)
	return b.service(noPostgres(f), testPolicy())
}

func noPostgres(f *testing.F) *store.Store {
	st, err := store.Open(f.Context(), "postgres://user@127.0.0.1:1/nothing", store.Config{Timeout: time.Millisecond})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(st.Close)
	return st
}

func deadRedis(f *testing.F) redisclient.Client {
	rdb := redisclient.Open(redisclient.Options{Addrs: []string{"127.0.0.1:1"}, MaxRetries: -1, DialTimeout: time.Millisecond, DialerRetries: 1})
	f.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
