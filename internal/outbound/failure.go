package outbound

import (
	"context"
	"errors"
	"io"
	"net"

	"golang.org/x/net/http2"
)

// Failure is a request without an answer.
type Failure struct {
	Sent     bool   // the request may have been processed; otherwise it certainly was not
	Refused  bool   // it was sent, and the server reported that it has not processed it
	NotFound bool   // the host has no address, or none that may be dialed
	Reason   string // from a fixed list: safe to show to the operator
}

func (f *Failure) Error() string { return f.Reason }

// failure names the reason. Without a connection nothing was sent. With one, the request may have been processed,
// unless nothing of it was written, or the server reported otherwise.
func (a *attempt) failure(ctx context.Context, err error) *Failure {
	nothing, said := a.giveUp(), a.unprocessed(err)
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
	if a.wire != nil && a.wire.left() && ctx.Err() == nil {
		err = io.EOF // net/http has another error for it, without a type
	}
	return &Failure{Sent: true, Reason: "no answer: " + Reason(err)}
}

// unprocessed explains how the server reported that it has not processed the request, or returns "". HTTP/2 has two
// ways (RFC 9113, 8.7): the stream is refused, or is above the last stream of a GOAWAY. A stream up to that one may
// have been processed, even if it is cut off.
func (a *attempt) unprocessed(err error) string {
	// net/http's errors for a stream convert to errors of x/net/http2.
	if stream, ok := errors.AsType[http2.StreamError](err); ok && stream.Code == http2.ErrCodeRefusedStream {
		return "not processed: the server refused the stream"
	}
	if a.wire != nil && a.wire.unprocessed(a.stream.Load()) {
		return "not processed: the server was closing the connection"
	}
	return ""
}

func notFound(err error) bool {
	_, forbidden := errors.AsType[*forbiddenAddressError](err)
	dns, failed := errors.AsType[*net.DNSError](err)
	return forbidden || failed && dns.IsNotFound
}
