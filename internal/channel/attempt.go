package channel

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

const maxError = 300 // bytes

// ask makes the request of one attempt. It returns the result by the status line, and the answer, which is empty if
// there was none.
func ask(ctx context.Context, client *outbound.Client, req *http.Request, now func() time.Time) (Result, outbound.Answer) {
	answer, err := client.Do(traced(ctx), req)
	if err != nil {
		return noAnswer(err), answer
	}
	return classify(answer, now()), answer
}

// traced hits the failpoint when a push has been written to its provider.
func traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { written() },
	})
}

// written hits that failpoint.
func written() { failpoint.Hit(failpoint.SendWritten) }

// noAnswer turns a request without an answer into a result. A request that was not sent, or not processed, is refused;
// any other may have been delivered. A provider that reports a request as not processed is not down.
func noAnswer(err error) Result {
	r := down(err.Error())
	if f, ok := errors.AsType[*outbound.Failure](err); ok {
		r.Down = r.Down && !f.Refused
		if f.Sent {
			r.Outcome = push.Unknown
		}
	}
	return r
}

// down returns the result of an attempt that failed before the push mattered: any other push would have failed, too.
func down(reason string) Result {
	return Result{Outcome: push.Refused, Down: reason != outbound.ErrHeldUp.Error(), Error: outbound.Printable(reason, maxError)}
}
