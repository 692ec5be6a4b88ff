package push

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

// LogEntry is a row of the audit log: who did what.
type LogEntry struct {
	ID         uuid.UUID
	At         time.Time
	Actor      Actor
	Action     Action
	Target     string          // the id of what was changed; "": of a recipient who was erased, or of none
	Difference json.RawMessage // an object: of each member that has changed, its old and its new value, or that it has

	// The names of the user or API key that acted, and of the one that was changed, as they are now, or of the operator; "": of something else, of one that is
	// gone, or of a key without one. A user without a name has the address instead.
	ActorName, TargetName string
}

// Action is what is done: the type of what it is done to, a dot, and a verb.
type Action string

// The actions. Submits are none: pushes say themselves when they were made, and by what.
const (
	ActKeyCreate Action = "key.create"
	ActKeyRotate Action = "key.rotate"
	ActKeyRevoke Action = "key.revoke"

	ActUserCreate      Action = "user.create"
	ActUserChange      Action = "user.change"
	ActUserDelete      Action = "user.delete"
	ActUserLink        Action = "user.link"         // to set a password
	ActUserEndSessions Action = "user.end_sessions" // one or all

	ActWebhookCreate       Action = "webhook.create"
	ActWebhookDelete       Action = "webhook.delete"
	ActWebhookEnable       Action = "webhook.enable"
	ActWebhookRotateSecret Action = "webhook.rotate_secret"
	ActWebhookTest         Action = "webhook.test"
	ActWebhookReplay       Action = "webhook.replay"

	ActPolicyChange Action = "policy.change"
	ActPolicyReset  Action = "policy.reset" // back to that of the operator's file

	ActScheduleCreate Action = "schedule.create"
	ActScheduleChange Action = "schedule.change"
	ActScheduleDelete Action = "schedule.delete"

	ActCampaignCreate   Action = "campaign.create"
	ActCampaignChange   Action = "campaign.change"
	ActCampaignAudience Action = "campaign.audience"
	ActCampaignDelete   Action = "campaign.delete"
	ActCampaignStart    Action = "campaign.start"
	ActCampaignPause    Action = "campaign.pause"
	ActCampaignResume   Action = "campaign.resume"
	ActCampaignCancel   Action = "campaign.cancel"

	ActRecipientPut    Action = "recipient.put"
	ActRecipientImport Action = "recipient.import"
	ActRecipientErase  Action = "recipient.erase"

	ActPushCancel Action = "push.cancel"
	ActPushMove   Action = "push.move"
	ActPushRetry  Action = "push.retry"

	ActBulkCreate Action = "bulk_change.create"
	ActBulkCancel Action = "bulk_change.cancel"

	ActTenantCap    Action = "tenant.cap"
	ActTenantRename Action = "tenant.rename"
)

// Actions lists all of them.
var Actions = []Action{
	ActKeyCreate, ActKeyRotate, ActKeyRevoke, ActUserCreate, ActUserChange, ActUserDelete, ActUserLink, ActUserEndSessions,
	ActWebhookCreate, ActWebhookDelete, ActWebhookEnable, ActWebhookRotateSecret, ActWebhookTest, ActWebhookReplay,
	ActPolicyChange, ActPolicyReset,
	ActScheduleCreate, ActScheduleChange, ActScheduleDelete,
	ActCampaignCreate, ActCampaignChange, ActCampaignAudience, ActCampaignDelete, ActCampaignStart, ActCampaignPause, ActCampaignResume, ActCampaignCancel,
	ActRecipientPut, ActRecipientImport, ActRecipientErase,
	ActPushCancel, ActPushMove, ActPushRetry,
	ActBulkCreate, ActBulkCancel,
	ActTenantCap, ActTenantRename,
}

// Type is the type of what the action is done to.
func (a Action) Type() string {
	of, _, _ := strings.Cut(string(a), ".")
	return of
}

// Acted is the action that the audit log has of one with a campaign.
func (a CampaignAction) Acted() Action { return Action("campaign." + a) }

// LogFilter is which entries are asked for. What is zero does not matter.
type LogFilter struct {
	ActorType ActorType
	Actor     uuid.UUID
	Action    Action
	Target    string
	From      time.Time // not before
	Until     time.Time // before
}

// LogPosition is where an entry stands in the log.
type LogPosition struct {
	At time.Time
	ID uuid.UUID
}

// LogPage is a page of the audit log, and where the next one begins; nil: it is the last one.
type LogPage struct {
	Entries []LogEntry
	Next    *LogPosition
}
