package app

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	runtime "runtime/pprof"
	"strings"
	"syscall"
)

// logStacks logs the stacks of all goroutines at each SIGUSR1, until stop is called. The process continues.
// Stacks hold no messages, recipients or secrets.
func logStacks(log *slog.Logger) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		defer close(done)
		for range signals {
			var stacks strings.Builder
			_ = runtime.Lookup("goroutine").WriteTo(&stacks, 2)    // a builder returns no error
			log.Error("goroutines", "goroutines", stacks.String()) // at every log level, because a person requested it
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}

// profiles adds the profiles of this process to the handler for operators, without the command line.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}
