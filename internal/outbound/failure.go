package outbound

import (
	"context"
	"errors"
	"net"
	"strings"

	"golang.org/x/net/http2"
)

// Failure is a request without an answer.
type Failure struct {
	Sent     bool   // the request may have been processed; otherwise it surely has not
	Refused  bool   // it was sent, and the server said that it has not processed it
	NotFound bool   // the host has no address, or none that may be dialed
	Reason   string // from a fixed list: safe to show to the operator
}

func (f *Failure) Error() string { return f.Reason }

// failure names what went wrong. Without a connection nothing was sent. With one, the request may have been
// processed, unless nothing of it was written, or the server said otherwise.
func (a *attempt) failure(ctx context.Context, err error) *Failure {
	nothing, said := a.giveUp(), unprocessed(err)
	switch {
	case errors.Is(err, errNoStream):
		return &Failure{Reason: errNoStream.Error()}
	case !a.connected:
		return &Failure{NotFound: notFound(err), Reason: "no connection: " + Reason(err)}
	case said != "":
		return &Failure{Refused: true, Reason: said}
	case nothing && (ctx.Err() != nil || a.late()):
		return &Failure{Reason: ErrHeldUp.Error()}
	case nothing:
		return &Failure{Reason: "not sent: " + Reason(err)}
	}
	return &Failure{Sent: true, Reason: "no answer: " + Reason(err)}
}

// unprocessed says how the server told that it has not processed a request, or nothing. HTTP/2 has two ways (RFC
// 9113, 8.7), which the libraries pass on: the stream is refused, or is above the last one that a GOAWAY names. A
// stream up to that one has perhaps been processed, even if it is cut off.
func unprocessed(err error) string {
	if stream, ok := errors.AsType[http2.StreamError](err); ok && stream.Code == http2.ErrCodeRefusedStream {
		return "not processed: the server refused the stream"
	}
	// These errors have no type. They are made for such streams alone.
	for _, made := range []string{"Server's graceful shutdown GOAWAY", "GOAWAY from server ErrCode:"} {
		if strings.HasPrefix(err.Error(), "http2: Transport received "+made) {
			return "not processed: the server was closing the connection"
		}
	}
	return ""
}

func notFound(err error) bool {
	_, forbidden := errors.AsType[*forbiddenAddressError](err)
	dns, failed := errors.AsType[*net.DNSError](err)
	return forbidden || failed && dns.IsNotFound
}
