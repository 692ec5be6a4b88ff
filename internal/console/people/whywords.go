package people

import (
	"context"
	"fmt"

	"github.com/sendquota/sendquota/client"
)

// ofPush reports the state of a push.
func (a *answerWhy) ofPush(ctx context.Context, p client.Push, of string) error {
	a.Push, a.At = &p, p.SendAt
	what := "a message" + of
	switch p.Status {
	case client.PushStatusSent:
		a.Sentence = fmt.Sprintf("%s was sent %s: the provider of %s accepted it.", a.Who, what, p.Channel)
	case client.PushStatusScheduled:
		a.Sentence = fmt.Sprintf("%s has not been sent %s yet: its send time is in the future.", a.Who, what)
		if !p.SendAt.After(a.now) {
			a.Sentence = fmt.Sprintf("%s has not been sent %s yet: it is due.", a.Who, what)
		}
		if p.Deferred {
			a.Sentence += " It was deferred because the requested time was full or in quiet hours."
		}
		if err := a.held(ctx, p); err != nil {
			return err
		}
		if p.LastError != "" {
			a.Sentence += " An attempt failed (" + p.LastError + ") and will be retried."
		}
	case client.PushStatusSending:
		a.Sentence = fmt.Sprintf("%s is being sent %s right now.", a.Who, what)
	case client.PushStatusFailed:
		a.Sentence = fmt.Sprintf("%s was not sent %s because the provider of %s did not accept it: %s.", a.Who, what, p.Channel, orUnknown(p.LastError))
	case client.PushStatusExpired:
		a.Sentence = fmt.Sprintf("%s was not sent %s because it expired before it could be sent: %s.", a.Who, what, orUnknown(p.LastError))
	case client.PushStatusCanceled:
		a.Sentence = fmt.Sprintf("%s was not sent %s because it was canceled%s.", a.Who, what, because2(p.LastError))
		if p.LastError == "opted-out" {
			_, err := a.check(ctx, client.NewCheck{Recipient: a.Who, SendAt: later(p.SendAt, a.now), Channel: p.Channel, Category: p.Category})
			return err
		}
	}
	if p.PossiblyDelivered && p.Status != client.PushStatusSent {
		a.Sentence += " It may have arrived anyway: an attempt was not confirmed."
	}
	return nil
}

func orUnknown(text string) string {
	if text == "" {
		return "the reason is unknown"
	}
	return text
}

// because2 puts the reason of a cancel into words.
func because2(text string) string {
	switch text {
	case "":
		return ""
	case "opted-out":
		return ", as they had opted out"
	case "campaign-canceled":
		return " with its campaign"
	}
	return ": " + text
}
