package console

import (
	"fmt"
	"strings"

	"github.com/sendquota/sendquota/client"
)

// ofPush says how a push stands.
func (a *answerWhy) ofPush(p client.Push, of string) {
	a.Push, a.At = &p, p.SendAt
	what := "a push" + of
	switch p.Status {
	case client.PushStatusSent:
		a.Sentence = fmt.Sprintf("%s was sent %s: the provider of %s accepted it.", a.who, what, p.Channel)
	case client.PushStatusScheduled:
		a.Sentence = fmt.Sprintf("%s has not been sent %s yet: it is scheduled, and its time has not come.", a.who, what)
		if !p.SendAt.After(a.now) {
			a.Sentence = fmt.Sprintf("%s is about to be sent %s: it is due now.", a.who, what)
		}
		if p.Deferred {
			a.Sentence += " The quota had no place at the time that was asked for, so it was deferred."
		}
		if p.LastError != "" {
			a.Sentence += " An attempt failed (" + p.LastError + ") and is tried again."
		}
	case client.PushStatusSending:
		a.Sentence = fmt.Sprintf("%s is being sent %s at this moment.", a.who, what)
	case client.PushStatusFailed:
		a.Sentence = fmt.Sprintf("%s was not sent %s because the provider of %s did not take it: %s.", a.who, what, p.Channel, orUnknown(p.LastError))
	case client.PushStatusExpired:
		a.Sentence = fmt.Sprintf("%s was not sent %s because it expired before it could be sent: %s.", a.who, what, orUnknown(p.LastError))
	case client.PushStatusCanceled:
		a.Sentence = fmt.Sprintf("%s was not sent %s because it was canceled%s.", a.who, what, because2(p.LastError))
	}
	if p.PossiblyDelivered && p.Status != client.PushStatusSent {
		a.Sentence += " It may have arrived all the same: an attempt ended with an unknown outcome."
	}
}

func orUnknown(text string) string {
	if text == "" {
		return "the reason is not known"
	}
	return text
}

func because2(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// because puts the reason of a refusal into words.
func because(reason string, rules []string) string {
	list := strings.Join(rules, " and ")
	switch reason {
	case "quota-exceeded":
		if len(rules) == 1 {
			return "the rule " + list + " was full"
		}
		return "the rules " + list + " were full"
	case "quiet-hours":
		return "it was quiet hours (" + list + ")"
	case "opted-out":
		return "they have opted out"
	case "tenant-cap-exceeded":
		return "your organisation's cap was used up (" + list + ")"
	}
	if list == "" {
		return "it was refused: " + strings.ReplaceAll(reason, "-", " ")
	}
	return "it was refused: " + strings.ReplaceAll(reason, "-", " ") + " (" + list + ")"
}
