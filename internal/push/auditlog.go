package push

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

// LogEntry is a row of the audit log: an actor, an action and its target.
type LogEntry struct {
	ID         uuid.UUID
	At         time.Time
	Actor      Actor
	Action     Action
	Target     string          // the id of the changed thing; "": an erased recipient, or no target
	Difference json.RawMessage // an object: the old and the new value of each changed member, or only that it changed

	// The current names of the acting user or API key and of the changed one, or the operator's name. They are "" for
	// anything else, for deleted ones and for keys without a name. A user without a name has the address instead.
	ActorName, TargetName string
}

// Action is the type of the target, a dot, and a verb.
type Action string

// The actions. Submits have none: each push records its own time and submitter.
const (
	ActKeyCreate Action = "key.create"
	ActKeyRotate Action = "key.rotate"
	ActKeyRevoke Action = "key.revoke"

	ActUserCreate      Action = "user.create"
	ActUserChange      Action = "user.change"
	ActUserDelete      Action = "user.delete"
	ActUserLink        Action = "user.link"         // a link for setting a password
	ActUserEndSessions Action = "user.end_sessions" // one or all

	ActWebhookCreate       Action = "webhook.create"
	ActWebhookDelete       Action = "webhook.delete"
	ActWebhookEnable       Action = "webhook.enable"
	ActWebhookRotateSecret Action = "webhook.rotate_secret"
	ActWebhookTest         Action = "webhook.test"
	ActWebhookReplay       Action = "webhook.replay"

	ActPolicyChange Action = "policy.change"
	ActPolicyReset  Action = "policy.reset" // back to the policy of the operator's file

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

// Actions lists all actions.
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

// Type returns the type of the action's target.
func (a Action) Type() string {
	of, _, _ := strings.Cut(string(a), ".")
	return of
}

// Acted returns the audit log's name of an action on a campaign.
func (a CampaignAction) Acted() Action { return Action("campaign." + a) }

// LogFilter selects entries of the audit log. Zero fields select all.
type LogFilter struct {
	ActorType ActorType
	Actor     uuid.UUID
	Action    Action
	Target    string
	From      time.Time // inclusive
	Until     time.Time // exclusive
}

// LogPosition is the position of an entry in the log.
type LogPosition struct {
	At time.Time
	ID uuid.UUID
}

// LogPage is a page of the audit log. Next is where the next page begins; nil: this is the last one.
type LogPage struct {
	Entries []LogEntry
	Next    *LogPosition
}
