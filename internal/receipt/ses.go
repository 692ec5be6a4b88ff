package receipt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// SES reads the notifications and the published events of Amazon SES, which come through a topic of SNS.
//
// https://docs.aws.amazon.com/ses/latest/dg/notification-contents.html
// https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html
type SES struct {
	topic snsTopic
	certs *certificates
}

// NewSES returns a reader of the topic with this ARN. It fetches certificates of SNS with fetch.
func NewSES(topic string, fetch Fetch) (*SES, error) {
	t, err := newTopic(topic)
	if err != nil {
		return nil, err
	}
	return &SES{t, newCertificates(fetch, time.Now)}, nil
}

// Read proves and reads a request. The report of a confirmation of a subscription has the URL that confirms it.
func (s *SES) Read(ctx context.Context, r Request) (Report, error) {
	if err := r.check(); err != nil {
		return Report{}, err
	}
	e, err := s.topic.open(ctx, r.Body, s.certs)
	if err != nil {
		return Report{}, err
	}
	switch e.Type {
	case snsSubscribed:
		if !s.topic.confirmURL(e.SubscribeURL) {
			return Report{}, refused("the URL does not confirm a subscription to the topic")
		}
		return Report{Confirm: e.SubscribeURL}, nil
	case snsNotification:
		return sesReport(e.Message), nil
	}
	return Report{}, nil
}

// sesEvent has the members of both forms that are read. A notification has a notificationType, and a published event an
// eventType.
type sesEvent struct {
	NotificationType, EventType string

	Mail struct {
		Destination   []string
		CommonHeaders struct{ MessageID string }
		Headers       []struct{ Name, Value string }
	}
	Bounce struct {
		BounceType, BounceSubType string
		BouncedRecipients         []sesRecipient
		Timestamp                 string
	}
	Complaint struct {
		ComplaintSubType, ComplaintFeedbackType string
		ComplainedRecipients                    []sesRecipient
		Timestamp                               string
	}
	Delivery struct {
		Recipients []string
		Timestamp  string
	}
}

type sesRecipient struct{ EmailAddress, Status, DiagnosticCode string }

// sesReport reads an event. SES also sends sentences that are no JSON, to test the topic.
func sesReport(message string) (report Report) {
	var e sesEvent
	if !decoded([]byte(message), &e) {
		return report
	}
	kind := cmp.Or(e.EventType, e.NotificationType)
	code, addresses, at := kind, e.Mail.Destination, ""
	switch kind {
	case "Bounce":
		code, addresses, at = e.Bounce.BounceType+"/"+e.Bounce.BounceSubType, addressesOf(e.Bounce.BouncedRecipients), e.Bounce.Timestamp
		if code == "Transient/General" && !e.hasStatus() {
			code = sesAutomaticReply
		}
	case "Complaint":
		addresses, at = addressesOf(e.Complaint.ComplainedRecipients), e.Complaint.Timestamp
		if detail := cmp.Or(e.Complaint.ComplaintSubType, e.Complaint.ComplaintFeedbackType); detail != "" {
			code += "/" + detail
		}
	case "Delivery":
		addresses, at = e.Delivery.Recipients, e.Delivery.Timestamp
	}
	m := sesMeaning(kind, code)
	if len(addresses) == 0 {
		addresses = []string{""}
	}
	push := e.push()
	for _, address := range addresses[:min(len(addresses), maxRecipients)] {
		report.add(m.receipts(push, code, address, instant(at))...)
	}
	return report
}

// hasStatus reports whether a delivery status notification came with a bounce. Automatic replies have none.
func (e *sesEvent) hasStatus() bool {
	return slices.ContainsFunc(e.Bounce.BouncedRecipients, func(r sesRecipient) bool { return r.Status != "" || r.DiagnosticCode != "" })
}

// push returns the push of our Message-ID. SES replaces it in the mail, and reports the original headers.
func (e *sesEvent) push() uuid.UUID {
	for _, h := range e.Mail.Headers {
		if strings.EqualFold(h.Name, "Message-ID") {
			if id := messageIDPush(h.Value); id != uuid.Nil {
				return id
			}
		}
	}
	return messageIDPush(e.Mail.CommonHeaders.MessageID)
}

func addressesOf(recipients []sesRecipient) (all []string) {
	for _, r := range recipients {
		all = append(all, r.EmailAddress)
	}
	return all
}

// decoded parses JSON. A member of another type than usual is left out: providers change what is not read here.
func decoded(text []byte, to any) bool {
	err := json.Unmarshal(text, to)
	_, mistyped := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || mistyped
}
