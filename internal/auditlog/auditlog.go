package auditlog

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Entry is a row of the audit log: an actor, an action and its target.
type Entry struct {
	ID         uuid.UUID
	At         time.Time
	Actor      push.Actor
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
	KeyCreate Action = "key.create"
	KeyRotate Action = "key.rotate"
	KeyRevoke Action = "key.revoke"

	UserCreate      Action = "user.create"
	UserChange      Action = "user.change"
	UserDelete      Action = "user.delete"
	UserLink        Action = "user.link"         // a link for setting a password
	UserEndSessions Action = "user.end_sessions" // one or all

	WebhookCreate       Action = "webhook.create"
	WebhookDelete       Action = "webhook.delete"
	WebhookEnable       Action = "webhook.enable"
	WebhookRotateSecret Action = "webhook.rotate_secret"
	WebhookTest         Action = "webhook.test"
	WebhookReplay       Action = "webhook.replay"

	ChannelCreate Action = "channel.create"
	ChannelChange Action = "channel.change"
	ChannelDelete Action = "channel.delete"
	ChannelTest   Action = "channel.test"

	PolicyChange Action = "policy.change"
	PolicyReset  Action = "policy.reset" // back to the policy of the operator's file

	ScheduleCreate Action = "schedule.create"
	ScheduleChange Action = "schedule.change"
	ScheduleDelete Action = "schedule.delete"

	CampaignCreate   Action = "campaign.create"
	CampaignChange   Action = "campaign.change"
	CampaignAudience Action = "campaign.audience"
	CampaignDelete   Action = "campaign.delete"
	CampaignStart    Action = "campaign.start"
	CampaignPause    Action = "campaign.pause"
	CampaignResume   Action = "campaign.resume"
	CampaignCancel   Action = "campaign.cancel"

	RecipientPut    Action = "recipient.put"
	RecipientImport Action = "recipient.import"
	RecipientErase  Action = "recipient.erase"

	SuppressionPut    Action = "suppression.put"
	SuppressionDelete Action = "suppression.delete"
	SuppressionImport Action = "suppression.import"

	PushCancel Action = "push.cancel"
	PushMove   Action = "push.move"
	PushRetry  Action = "push.retry"

	BulkCreate Action = "bulk_change.create"
	BulkCancel Action = "bulk_change.cancel"

	PauseCreate Action = "pause.create"
	PauseChange Action = "pause.change" // it ends later
	PauseEnd    Action = "pause.end"    // by a request, or by its time

	TenantCap    Action = "tenant.cap"
	TenantRename Action = "tenant.rename"
)

// Actions lists all actions.
var Actions = []Action{
	KeyCreate, KeyRotate, KeyRevoke, UserCreate, UserChange, UserDelete, UserLink, UserEndSessions,
	WebhookCreate, WebhookDelete, WebhookEnable, WebhookRotateSecret, WebhookTest, WebhookReplay,
	ChannelCreate, ChannelChange, ChannelDelete, ChannelTest,
	PolicyChange, PolicyReset,
	ScheduleCreate, ScheduleChange, ScheduleDelete,
	CampaignCreate, CampaignChange, CampaignAudience, CampaignDelete, CampaignStart, CampaignPause, CampaignResume, CampaignCancel,
	RecipientPut, RecipientImport, RecipientErase,
	SuppressionPut, SuppressionDelete, SuppressionImport,
	PushCancel, PushMove, PushRetry,
	BulkCreate, BulkCancel,
	PauseCreate, PauseChange, PauseEnd,
	TenantCap, TenantRename,
}

// Type returns the type of the action's target.
func (a Action) Type() string {
	of, _, _ := strings.Cut(string(a), ".")
	return of
}

// OfCampaign returns the action that has a name such as start on a campaign.
func OfCampaign(name string) Action { return Action("campaign." + name) }

// Filter selects entries of the audit log. Zero fields select all.
type Filter struct {
	ActorType push.ActorType
	Actor     uuid.UUID
	Action    Action
	Target    string
	From      time.Time // inclusive
	Until     time.Time // exclusive
}

// Position is the position of an entry in the log.
type Position struct {
	At time.Time
	ID uuid.UUID
}

// Page is a page of the audit log. Next is where the next page begins; nil: this is the last one.
type Page struct {
	Entries []Entry
	Next    *Position
}
