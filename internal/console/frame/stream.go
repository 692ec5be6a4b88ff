package frame

import (
	"bytes"
	"net/http"
	"time"

	"github.com/sendquota/sendquota/client"
)

// Bounds of the streams that are open at the same time in this process, all together and of one tenant.
const (
	maxStreams       = 400
	maxTenantStreams = 50
)

// How long a stream lasts, after which the browser opens it again, with its session looked at anew: so long a user who was signed out
// may see a page go on; and how soon a stream notices that the program stops.
const (
	streamTime = time.Minute
	streamTick = 500 * time.Millisecond
)

// Stream sends a part of a screen as server-sent events, each time that it has changed, until the browser goes away or the program
// stops. It looks every so often; view makes what the part is drawn of, and its calls go over the API like all others.
//
//	<div hx-sse:connect="{{.Link "/now/live"}}">{{template "live" .}}</div>
func (p *Page) Stream(screen, part string, every time.Duration, view func() (any, error)) error {
	place, free := p.site.streams.take(p.Visitor.Caller.Tenant)
	if !free {
		return &client.Problem{Title: "Too many pages are open", Status: http.StatusTooManyRequests,
			Detail: "This page does not update by itself: too many open pages do so already. Close some, or reload it later"}
	}
	defer place.release()
	out := http.NewResponseController(p.Writer)
	var last []byte
	for began := time.Now(); time.Since(began) < streamTime; {
		p.Made.forget()
		var err error
		if p.Main, err = view(); err != nil {
			if !p.Sent {
				return err
			}
			return nil // the browser comes again, and gets the error then
		}
		text, err := p.draw(screen, part)
		if p.Context().Err() != nil {
			return nil
		}
		if err != nil {
			p.site.cfg.Log.ErrorContext(p.Context(), "cannot draw part of a page", "screen", screen, "part", part, "error", err)
			return nil
		}
		if !p.Sent {
			p.Sent = true
			p.Writer.Header().Set("Content-Type", "text/event-stream")
			p.Writer.Header().Set("X-Accel-Buffering", "no") // proxies are to hand on each event at once
		}
		message := []byte("event: still\n\n") // nothing new, but the page is followed
		if !bytes.Equal(text, last) {
			message, last = event(text), text
		}
		_ = out.SetWriteDeadline(time.Now().Add(every + 30*time.Second)) // a test's writer has none
		if _, err := p.Writer.Write(message); err != nil {
			return nil
		}
		if err := out.Flush(); err != nil || !p.wait(every, place.lost) {
			return nil
		}
	}
	return nil
}

// wait lets time pass; false: the browser has gone, the place is another tenant's by now, or the program stops.
func (p *Page) wait(d time.Duration, lost <-chan struct{}) bool {
	tick := time.NewTicker(streamTick)
	defer tick.Stop()
	for left := d; left > 0; left -= streamTick {
		select {
		case <-p.Context().Done():
			return false
		case <-lost:
			return false
		case <-tick.C:
			if p.site.cfg.Stopping() {
				return false
			}
		}
	}
	return !p.site.cfg.Stopping()
}

// event is a text as a message of an event stream.
func event(text []byte) []byte {
	var message []byte
	for line := range bytes.Lines(bytes.ReplaceAll(text, []byte("\r"), nil)) {
		message = append(append(message, "data: "...), bytes.TrimSuffix(line, []byte("\n"))...)
		message = append(message, '\n')
	}
	return append(message, '\n')
}
