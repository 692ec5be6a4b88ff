package app

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestLogStacks: a process logs the stacks of its goroutines at each SIGUSR1, at every log level, and continues.
func TestLogStacks(t *testing.T) {
	t.Parallel()
	var log testenv.Buffer
	stop := logStacks(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})))
	defer stop()
	for asked := 1; asked <= 2; asked++ {
		testenv.Check(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
		testenv.Until(t, 10*time.Millisecond, "the stacks are logged", func() bool { return strings.Count(log.String(), `"msg":"goroutines"`) == asked })
	}
	if text := log.String(); !strings.Contains(text, "TestLogStacks") || strings.Count(text, "\n") != 2 {
		t.Errorf("logged %s", text)
	}
}

// TestMetricsOnly_Profiles: the worker's own address has profiles, without the command line; the API's has none.
func TestMetricsOnly_Profiles(t *testing.T) {
	t.Parallel()
	b := setup(t, (&App{}).timeouts())
	ask := func(h http.Handler, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	worker := b.app.metricsOnly()
	if w := ask(worker, "/debug/pprof/goroutine?debug=1"); w.Code != 200 || !strings.Contains(w.Body.String(), "goroutine profile") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/debug/pprof/heap", "/debug/pprof/"} {
		if w := ask(worker, path); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := ask(worker, "/debug/pprof/cmdline"); w.Code != 404 {
		t.Errorf("the command line: %d", w.Code)
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine", "/debug/pprof/profile"} {
		if w := ask(b.app.handler(), path); w.Code != 404 {
			t.Errorf("the API's %s: %d", path, w.Code)
		}
	}
}
