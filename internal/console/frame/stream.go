package frame

import (
	"bytes"
	"net/http"
	"time"

	"github.com/sendquota/sendquota/client"
)

// Maximum numbers of open streams in this process: of all tenants and of one tenant.
const (
	maxStreams       = 400
	maxTenantStreams = 50
)

// streamTime is the lifetime of a stream. The browser then opens it again, and the session is checked: so a user who was signed out sees a
// live page for that long at most. streamTick is the longest time until a stream notices that the program stops.
const (
	streamTime = time.Minute
	streamTick = 500 * time.Millisecond
)

// Stream sends a part of a screen as server-sent events until the browser goes away or the program stops. It draws the part at each
// interval and sends it if it has changed. view returns the data of the part, and calls the API for it.
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
			return nil // the browser reconnects and gets the error then
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
			p.Writer.Header().Set("X-Accel-Buffering", "no") // proxies must pass on each event at once
		}
		message := []byte("event: still\n\n") // unchanged, but the stream is alive
		if !bytes.Equal(text, last) {
			message, last = event(text), text
		}
		_ = out.SetWriteDeadline(time.Now().Add(every + 30*time.Second)) // writers in tests have no deadline
		if _, err := p.Writer.Write(message); err != nil {
			return nil
		}
		if err := out.Flush(); err != nil || !p.wait(every, place.lost) {
			return nil
		}
	}
	return nil
}

// wait waits for d. It returns false if the browser is gone, another tenant got the place, or the program stops.
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

// event formats a text as a message of an event stream.
func event(text []byte) []byte {
	var message []byte
	for line := range bytes.Lines(bytes.ReplaceAll(text, []byte("\r"), nil)) {
		message = append(append(message, "data: "...), bytes.TrimSuffix(line, []byte("\n"))...)
		message = append(message, '\n')
	}
	return append(message, '\n')
}
