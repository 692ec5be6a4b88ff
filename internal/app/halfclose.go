package app

import (
	"context"
	"net/http"
)

// serveHalfClosed continues to serve a request after the caller has closed its half of the connection (RFC 9112, 9.6).
// net/http ends the context of a request when the connection has nothing more to read, although the caller may wait for the
// answer.
//
// A caller that is gone looks the same until the server writes to it. So nothing depends on this end: a request has its
// time-out, and a stream ends when it cannot be written. A broken connection still ends the request at once.
func serveHalfClosed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(connKey{}).(*trackedConn)
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		defer context.AfterFunc(r.Context(), func() {
			if !c.halfClosed.Load() {
				cancel()
			}
		})()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}
