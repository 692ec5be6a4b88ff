package channel

import (
	"errors"
	"fmt"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

// A reply begins with an enhanced status code (RFC 3463). The last one may end with the
// message's name in the server's queue.
var (
	enhanced = regexp.MustCompile(`^([245]\.[0-9]{1,3}\.[0-9]{1,3})\b`)
	queuedAs = regexp.MustCompile(`(?i)queued as ([0-9A-Za-z.-]{1,64})`)
)

// classify turns an SMTP session into a result.
func (e *Email) classify(d delivery) Result {
	if d.err == nil {
		r := Result{Outcome: push.Delivered, Handed: d.handed}
		if id := queuedAs.FindStringSubmatch(d.reply); id != nil {
			r.ProviderMessageID = id[1]
		}
		return r
	}
	reply, replied := errors.AsType[*textproto.Error](d.err)
	switch {
	case replied:
		return classifyReply(d.at, reply)
	case errors.Is(d.err, outbound.ErrHeldUp):
		return down(outbound.ErrHeldUp.Error())
	case d.at == stepEnd:
		return Result{Outcome: push.Unknown, Down: true, Error: "no answer: " + mailReason(d.err)}
	}
	return down(fmt.Sprintf("not handed over, at %s: %s", d.at, mailReason(d.err)))
}

// classifyReply turns a server's reply into a result. A 5xx about the recipient or the message is permanent. One about
// us (how we greet or sign in, who we are, or what we may send: see mailBlames) is for the operator to mend, and so is
// one that rejects the command itself.
func classifyReply(at step, reply *textproto.Error) Result {
	code := enhanced.FindString(reply.Msg)
	gone := slices.Contains([]string{"5.1.1", "5.1.6", "5.1.10"}, code) // the address does not exist (RFC 3463 and 7505)
	r := Result{Outcome: push.Refused, Error: strings.Join(strings.Fields(fmt.Sprintf("the mail server answered %d %s to %s", reply.Code, code, at)), " ")}
	if class := reply.Code / 100; at == stepEnd && class != 4 && class != 5 {
		r.Outcome, r.Down = push.Unknown, true
		return r
	}
	aboutPush := at == stepRCPT || at == stepDATA || at == stepEnd
	r.Down = !aboutPush || reply.Code == 421 // 421 ends the service
	r.Final = aboutPush && reply.Code/10 == 55
	if why := blames(code, reply.Msg); r.Final && why != "" {
		r.Final, r.Down, r.Error = false, true, r.Error+": "+why
	}
	if r.Unregistered = r.Final && at == stepRCPT && gone; r.Unregistered {
		r.OneAddress, r.Error = true, "unregistered: "+r.Error
	}
	return r
}

// mailReason returns the reason of a failure, from a fixed list.
func mailReason(err error) string {
	protocol, wrong := errors.AsType[textproto.ProtocolError](err)
	switch {
	case wrong && protocol != "":
		return "the server does not speak SMTP"
	case errors.Is(err, errNoStartTLS), errors.Is(err, errNoLogin), errors.Is(err, errTooMuch):
		return err.Error()
	}
	return outbound.Reason(err)
}
