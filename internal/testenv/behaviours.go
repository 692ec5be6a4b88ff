package testenv

import (
	"io"
	"net/http"
	"time"
)

// Behaviours maps names to treatments of a request that a Provider has read. With any other name it accepts the request.
var Behaviours = map[string]http.HandlerFunc{
	"slow":        func(w http.ResponseWriter, _ *http.Request) { accept(w, "slow", time.Second) },
	"slower":      func(w http.ResponseWriter, _ *http.Request) { accept(w, "slower", 5*time.Second) },
	"slowish":     func(w http.ResponseWriter, _ *http.Request) { accept(w, "slowish", 200*time.Millisecond) },
	"hang":        func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"drip":        drips("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"),
	"drip-head":   drips("HTTP/1.1 200 OK\r\nX-Padding: "),
	"drop":        hangsUp(""),
	"garbage":     hangsUp("here is your answer\r\n\r\n"),
	"400":         answers(http.StatusBadRequest, ""),
	"404":         answers(http.StatusNotFound, ""),
	"429":         answers(http.StatusTooManyRequests, "2"),
	"429-1s":      answers(http.StatusTooManyRequests, "1"),
	"500":         answers(http.StatusInternalServerError, ""),
	"503":         answers(http.StatusServiceUnavailable, "2"),
	"503-1s":      answers(http.StatusServiceUnavailable, "1"),
	"503-no-time": answers(http.StatusServiceUnavailable, ""),
	"redirect": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	},
	"large":     talks(http.StatusOK),
	"large-500": talks(http.StatusInternalServerError),
}

func accept(w http.ResponseWriter, id string, after time.Duration) {
	time.Sleep(after)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"message_id": "provider-`+id+`"}`)
}

func answers(status int, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
	}
}

// talks answers with 10 MB.
func talks(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		for range 160 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}
}

// hangsUp says something, and drops the connection.
func hangsUp(last string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, last)
			_ = c.Close()
		}
	}
}

// drips says something, and then little, until the client hangs up.
func drips(first string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		for _, err = io.WriteString(c, first); err == nil; _, err = io.WriteString(c, "x") {
			time.Sleep(10 * time.Millisecond)
		}
	}
}
