package pushes

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// pushView is a push as the API shows it.
type pushView struct {
	ID                string         `json:"id" format:"uuid"`
	Status            push.Status    `json:"status" enum:"scheduled,sending,sent,failed,canceled,expired"`
	Recipient         string         `json:"recipient"`
	Channel           string         `json:"channel"`
	Category          string         `json:"category"`
	Campaign          *string        `json:"campaign" format:"uuid" nullable:"true" doc:"The campaign of the push; null: none."`
	RetryOf           string         `json:"retry_of,omitempty" format:"uuid" doc:"The push that this one retries. Absent if it is no retry."`
	SendAt            string         `json:"send_at" format:"date-time" doc:"The promised send time: the push's place in the recipient's quota."`
	RequestedSendAt   string         `json:"requested_send_at" format:"date-time" doc:"The requested send time, rounded up to a second."`
	Deferred          bool           `json:"deferred" doc:"A conflict moved the push to a later time."`
	NextAttemptAt     string         `json:"next_attempt_at,omitempty" format:"date-time" doc:"The time of the next attempt, if it differs from send_at: after a failed attempt, or because earlier sends are late."`
	Held              *heldView      `json:"held,omitempty" doc:"Why the push was not sent when it was due; absent if it was. Of several holds, the last one."`
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
	Sends             []sendView     `json:"sends" doc:"The attempts, oldest first. Lists omit them: read the single push."`
	Quota             []usageView    `json:"quota,omitzero" doc:"The use of every rule around send_at, including this push. Only in answers to a submit or a reschedule."`
}

// heldView is the reason why a due push waits, or waited.
type heldView struct {
	By    string  `json:"by" enum:"rule,pause" doc:"rule: a rule or quiet hours of the policy; pause: its campaign was paused."`
	Rule  string  `json:"rule,omitempty" doc:"The name of the rule or the quiet hours; of several, the one that held the push longest."`
	Since string  `json:"since" format:"date-time"`
	Until *string `json:"until" format:"date-time" nullable:"true" doc:"The expected end of the hold, or its end. null: not known."`
}

func heldViewOf(h push.Hold) *heldView {
	switch h.By {
	case "":
		return nil
	case push.PausedCampaign:
		return &heldView{By: "pause", Since: rest.Stamp(h.Since), Until: rest.MaybeTime(h.Until)}
	}
	return &heldView{By: "rule", Rule: h.By, Since: rest.Stamp(h.Since), Until: rest.MaybeTime(h.Until)}
}

func (v *heldView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"by":`, v.By)
	b = appendSome(b, `,"rule":`, v.Rule)
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
}

// TransformSchema adds null to an enumeration.
func (*sendView) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	outcome := s.Properties["outcome"]
	outcome.Enum = append(outcome.Enum, nil)
	return s
}

// usageView is the use of a rule.
type usageView struct {
	Rule          string  `json:"rule"`
	Limit         int     `json:"limit"`
	WindowSeconds float64 `json:"window_seconds" doc:"The length of the window; for a rule with per, of the period that contains the time."`
	Used          int     `json:"used" doc:"The number of sends that the rule counts in the fullest window that contains the time, or in the period."`
	Remaining     int     `json:"remaining"`
}

func viewOf(p push.Push) *pushView {
	sendAt, createdAt := rest.Stamp(p.SendAt), rest.Stamp(p.CreatedAt)
	v := &pushView{
		ID: p.ID.String(), Status: p.Status, Recipient: p.Recipient, Channel: p.Channel, Category: p.Category, Campaign: rest.MaybeID(p.Campaign),
		SendAt: sendAt, RequestedSendAt: rest.StampLike(p.RequestedSendAt, p.SendAt, sendAt), Deferred: p.SendAt.After(p.RequestedSendAt),
		ExpiresAt: rest.Stamp(p.ExpiresAt), Attempts: p.Attempts, To: p.To, Message: rest.RawObject(p.Message), Metadata: rest.RawObject(p.Metadata),
		LastError: p.LastError, PossiblyDelivered: p.PossiblyDelivered || p.Retry.Doubt, RequestID: p.RequestID, CreatedAt: createdAt, UpdatedAt: rest.StampLike(p.UpdatedAt, p.CreatedAt, createdAt),
		Sends: make([]sendView, len(p.Sends)),
	}
	v.Held = heldViewOf(p.Held)
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
		if s.Outcome != "" {
			v.Sends[i].Outcome = (*string)(&p.Sends[i].Outcome)
		}
	}
	return v
}

// bookedView shows a push with the use of its quota.
func bookedView(r schedule.Result) *pushView {
	v := viewOf(r.Push)
	v.Quota = usageViews(r.Usage, r.Push.SendAt)
	return v
}

func usageViews(usage []quota.Usage, at time.Time) []usageView {
	return rest.ViewsOf(usage, func(u quota.Usage) usageView {
		return usageView{Rule: u.Rule.Name, Limit: u.Rule.Limit, WindowSeconds: windowSeconds(u.Rule, at), Used: u.Used, Remaining: u.Remaining}
	})
}

func (h *pushes) get(c *rest.Call) error {
	p, err := h.reader.Push(c.Request.Context(), c.Caller.Tenant, c.ID)
	if err != nil {
		return err
	}
	showMessage(c, &p)
	return c.Answer(http.StatusOK, viewOf(p))
}
