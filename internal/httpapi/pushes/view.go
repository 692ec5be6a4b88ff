package pushes

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
)

// pushView is a push as the API shows it.
type pushView struct {
	ID                string         `json:"id" format:"uuid"`
	Status            push.Status    `json:"status" enum:"scheduled,sending,sent,failed,canceled,expired"`
	Recipient         string         `json:"recipient"`
	Channel           string         `json:"channel"`
	Category          string         `json:"category"`
	Level             string         `json:"level" enum:"urgent,normal,bulk" doc:"The service level of the category, when the push was booked or moved: which of the pushes that wait for a busy channel leave first. Pushes of a campaign without a category are bulk."`
	Campaign          *string        `json:"campaign" format:"uuid" nullable:"true" doc:"The campaign of the push; null: none."`
	RetryOf           string         `json:"retry_of,omitempty" format:"uuid" doc:"The push that this one retries. Absent if it is no retry."`
	SendAt            string         `json:"send_at" format:"date-time" doc:"The promised send time: the push's place in the recipient's quota."`
	RequestedSendAt   string         `json:"requested_send_at" format:"date-time" doc:"The requested send time, rounded up to a second."`
	Deferred          bool           `json:"deferred" doc:"A conflict moved the push to a later time."`
	NextAttemptAt     string         `json:"next_attempt_at,omitempty" format:"date-time" doc:"The time of the next attempt, if it differs from send_at: after a failed attempt, or because earlier sends are late."`
	Held              *heldView      `json:"held,omitempty" doc:"Why the push was not sent when it was due; absent if it was. Of several holds, the last one."`
	Paused            *bool          `json:"paused,omitempty" doc:"A pause stops this push now; it is booked all the same. Only in answers to a submit, a reschedule or a retry."`
	ExpiresAt         string         `json:"expires_at" format:"date-time"`
	Attempts          int            `json:"attempts"`
	To                string         `json:"to,omitempty"`
	Message           rest.RawObject `json:"message"`
	Metadata          rest.RawObject `json:"metadata" nullable:"true"`
	LastError         string         `json:"last_error,omitempty" doc:"Why the last attempt failed, or why the push ended. It begins with unregistered if the provider reports the address as unregistered."`
	PossiblyDelivered bool           `json:"possibly_delivered" doc:"An attempt of the push, or of the push that it retries, ended with an unknown outcome: the message may have arrived."`
	RequestID         string         `json:"request_id" doc:"The X-Request-Id of the request that submitted the push. Empty for pushes from before it was recorded."`
	CreatedAt         string         `json:"created_at" format:"date-time"`
	UpdatedAt         string         `json:"updated_at" format:"date-time"`
	SMS               *SMSView       `json:"sms,omitempty" doc:"The size of the text message. Absent if the channel sends no text messages."`
	Sends             []sendView     `json:"sends" doc:"The attempts, oldest first. Lists omit them: read the single push."`
	Quota             []usageView    `json:"quota,omitzero" doc:"The use of every rule around send_at, including this push. Only in answers to a submit or a reschedule."`
}

func (v *pushView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"id":`, v.ID)
	b = appendText(b, `,"status":`, string(v.Status))
	b = appendText(b, `,"recipient":`, v.Recipient)
	b = appendText(b, `,"channel":`, v.Channel)
	b = appendText(b, `,"category":`, v.Category)
	b = appendText(b, `,"level":`, v.Level)
	b = appendMaybe(b, `,"campaign":`, v.Campaign)
	b = appendSome(b, `,"retry_of":`, v.RetryOf)
	b = appendText(b, `,"send_at":`, v.SendAt)
	b = appendText(b, `,"requested_send_at":`, v.RequestedSendAt)
	b = strconv.AppendBool(append(b, `,"deferred":`...), v.Deferred)
	b = appendSome(b, `,"next_attempt_at":`, v.NextAttemptAt)
	if v.Held != nil {
		b = v.Held.AppendJSON(append(b, `,"held":`...))
	}
	if v.Paused != nil {
		b = strconv.AppendBool(append(b, `,"paused":`...), *v.Paused)
	}
	b = appendText(b, `,"expires_at":`, v.ExpiresAt)
	b = strconv.AppendInt(append(b, `,"attempts":`...), int64(v.Attempts), 10)
	b = appendSome(b, `,"to":`, v.To)
	b = appendRaw(b, `,"message":`, v.Message)
	b = appendRaw(b, `,"metadata":`, v.Metadata)
	b = appendSome(b, `,"last_error":`, v.LastError)
	b = strconv.AppendBool(append(b, `,"possibly_delivered":`...), v.PossiblyDelivered)
	b = appendText(b, `,"request_id":`, v.RequestID)
	b = appendText(b, `,"created_at":`, v.CreatedAt)
	b = appendText(b, `,"updated_at":`, v.UpdatedAt)
	if v.SMS != nil {
		b = v.SMS.AppendJSON(append(b, `,"sms":`...))
	}
	b = append(b, `,"sends":`...)
	if len(v.Sends) == 0 {
		b = append(b, `[]`...)
	} else {
		b = appendValue(b, v.Sends)
	}
	if v.Quota != nil {
		b = appendAll(append(b, `,"quota":`...), v.Quota, (*usageView).AppendJSON)
	}
	return append(b, '}')
}

// heldView is the reason why a due push waits, or waited.
type heldView struct {
	By      string  `json:"by" enum:"rule,pause,channel" doc:"rule: a rule or quiet hours of the policy; pause: sending was paused; channel: your own channel sends nothing."`
	Rule    string  `json:"rule,omitempty" doc:"The name of the rule or the quiet hours; of several, the one that held the push longest."`
	Scope   string  `json:"scope,omitempty" enum:"all,channel,category,campaign" doc:"What was paused: everything, its channel, its category or its campaign. Only for a pause."`
	Problem string  `json:"problem,omitempty" doc:"Why the channel sends nothing, such as: it is disabled. Only for a channel."`
	Since   string  `json:"since" format:"date-time"`
	Until   *string `json:"until" format:"date-time" nullable:"true" doc:"The expected end of the hold, or its end. null: not known."`
}

func heldViewOf(h push.Hold) *heldView {
	if h.By == "" {
		return nil
	}
	if scope, paused := strings.CutPrefix(h.By, push.PausedBy); paused {
		return &heldView{By: "pause", Scope: scope, Since: rest.Stamp(h.Since), Until: rest.MaybeTime(h.Until)}
	}
	if problem, channel := strings.CutPrefix(h.By, push.ChannelBy); channel {
		return &heldView{By: "channel", Problem: problem, Since: rest.Stamp(h.Since), Until: rest.MaybeTime(h.Until)}
	}
	return &heldView{By: "rule", Rule: h.By, Since: rest.Stamp(h.Since), Until: rest.MaybeTime(h.Until)}
}

func (v *heldView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"by":`, v.By)
	b = appendSome(b, `,"rule":`, v.Rule)
	b = appendSome(b, `,"scope":`, v.Scope)
	b = appendSome(b, `,"problem":`, v.Problem)
	b = appendText(b, `,"since":`, v.Since)
	return append(appendMaybe(b, `,"until":`, v.Until), '}')
}

// sendView is one attempt.
type sendView struct {
	Attempt           int     `json:"attempt" doc:"1, 2, …"`
	StartedAt         string  `json:"started_at" format:"date-time"`
	EndedAt           *string `json:"ended_at" format:"date-time" nullable:"true" doc:"null while the attempt is in progress."`
	Outcome           *string `json:"outcome" enum:"delivered,refused,unknown" nullable:"true" doc:"delivered: the provider accepted it; refused: not delivered; unknown: it may have been delivered. null while the attempt is in progress."`
	ProviderMessageID string  `json:"provider_message_id" doc:"The provider's own id of the message, if it returned one."`
	Error             string  `json:"error"`
	Segments          *int    `json:"segments" nullable:"true" doc:"The segments of the text message that the attempt sent. null: it was none, or is not known because the attempt was lost."`
}

// TransformSchema adds null to an enumeration.
func (*sendView) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	outcome := s.Properties["outcome"]
	outcome.Enum = append(outcome.Enum, nil)
	return s
}

func (v *usageView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"rule":`, v.Rule)
	b = strconv.AppendInt(append(b, `,"limit":`...), int64(v.Limit), 10)
	b = strconv.AppendFloat(append(b, `,"window_seconds":`...), v.WindowSeconds, 'f', -1, 64)
	b = strconv.AppendInt(append(b, `,"used":`...), int64(v.Used), 10)
	b = strconv.AppendInt(append(b, `,"remaining":`...), int64(v.Remaining), 10)
	return append(b, '}')
}

// usageView is the use of a rule.
type usageView struct {
	Rule          string  `json:"rule"`
	Limit         int     `json:"limit"`
	WindowSeconds float64 `json:"window_seconds" doc:"The length of the window; for a rule with per, of the period that contains the time."`
	Used          int     `json:"used" doc:"The number of sends that the rule counts in the fullest window that contains the time, or in the period."`
	Remaining     int     `json:"remaining"`
}

// viewOf shows a push. texts measures the text of its message; nil: it has none.
func viewOf(texts TextService, p push.Push) *pushView {
	sendAt, createdAt := rest.Stamp(p.SendAt), rest.Stamp(p.CreatedAt)
	v := &pushView{
		ID: p.ID.String(), Status: p.Status, Recipient: p.Recipient, Channel: p.Channel, Category: p.Category, Level: p.Level.String(), Campaign: rest.MaybeID(p.Campaign),
		SendAt: sendAt, RequestedSendAt: rest.StampLike(p.RequestedSendAt, p.SendAt, sendAt), Deferred: p.SendAt.After(p.RequestedSendAt),
		ExpiresAt: rest.Stamp(p.ExpiresAt), Attempts: p.Attempts, To: p.To, Message: rest.RawObject(p.Message), Metadata: rest.RawObject(p.Metadata),
		LastError: p.LastError, PossiblyDelivered: p.PossiblyDelivered || p.Retry.Doubt, RequestID: p.RequestID, CreatedAt: createdAt, UpdatedAt: rest.StampLike(p.UpdatedAt, p.CreatedAt, createdAt),
		Sends: make([]sendView, len(p.Sends)),
	}
	v.Held = heldViewOf(p.Held)
	v.SMS = SMSViewOf(texts, p.Tenant, p.Channel, p.Message)
	if p.Status == push.Scheduled && !p.NextAt.Equal(p.SendAt) {
		v.NextAttemptAt = rest.Stamp(p.NextAt)
	}
	if p.Retry.Of != uuid.Nil {
		v.RetryOf = p.Retry.Of.String()
	}
	for i, s := range p.Sends {
		v.Sends[i] = sendView{
			Attempt: s.Attempt, StartedAt: rest.Stamp(s.StartedAt), EndedAt: rest.MaybeTime(s.EndedAt),
			ProviderMessageID: s.ProviderMessageID, Error: s.Error,
		}
		if s.Segments > 0 {
			v.Sends[i].Segments = &p.Sends[i].Segments
		}
		if s.Outcome != "" {
			v.Sends[i].Outcome = (*string)(&p.Sends[i].Outcome)
		}
	}
	return v
}

// examplePush shows a push in one of its states.
func examplePush(status push.Status) *pushView {
	p := push.Push{
		Content: push.Content{Recipient: "user-42", Channel: "push", Category: "marketing", To: "+4512345678", Message: json.RawMessage(`{"title": "Sale", "body": "Everything must go.", "data": {"any": "json"}}`), Metadata: json.RawMessage(`{"campaign": "x"}`)},
		ID:      uuid.MustParse(rest.ExampleID), Status: status, SendAt: rest.ExampleTime(0), RequestedSendAt: rest.ExampleTime(0), NextAt: rest.ExampleTime(0), ExpiresAt: rest.ExampleTime(4 * time.Hour), CreatedAt: rest.ExampleTime(-24 * time.Hour), UpdatedAt: rest.ExampleTime(-24 * time.Hour), RequestID: "0193a1df-f1c2-7d10-8a4e-5b7c9d2e4f60",
	}
	if status == push.Sent {
		p.Attempts, p.UpdatedAt = 1, rest.ExampleTime(1200*time.Millisecond)
		p.Sends = []push.Send{{
			Attempt: 1, StartedAt: rest.ExampleTime(120 * time.Millisecond), EndedAt: p.UpdatedAt, Outcome: push.Delivered, ProviderMessageID: "msg-1",
		}}
	}
	v := viewOf(nil, p)
	if status == push.Scheduled {
		v.Quota = usageViews([]quota.Usage{{Rule: exampleRule, Used: 1, Remaining: 0}}, p.SendAt)
	}
	return v
}

// bookedView shows a push with the use of its quota.
func bookedView(texts TextService, d *booking.Decision) *pushView {
	v := viewOf(texts, d.Push)
	paused := d.Push.Paused
	v.Paused = &paused
	v.Quota = usageViews(d.Usage, d.Push.SendAt)
	return v
}

func usageViews(usage []quota.Usage, at time.Time) []usageView {
	return rest.ViewsOf(usage, func(u quota.Usage) usageView {
		return usageView{Rule: u.Rule.Name, Limit: u.Rule.Limit, WindowSeconds: windowSeconds(u.Rule, at), Used: u.Used, Remaining: u.Remaining}
	})
}

// windowSeconds returns the length of a rule's window, or of the period that contains a time.
func windowSeconds(r quota.Rule, at time.Time) float64 { return r.Length(at).Seconds() }

func (h *pushes) get(c *rest.Call) error {
	p, err := h.reader.Push(c.Request.Context(), c.Caller.Tenant, c.ID)
	if err != nil {
		return err
	}
	showMessage(c, &p)
	return c.Answer(http.StatusOK, viewOf(h.texts, p))
}
