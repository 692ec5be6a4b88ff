package httpapi

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/auditlog"
)

// notLogged lists operations that write nothing to the audit log although they are no reads, with the reason.
var notLogged = map[string]string{
	"submit-push":       "a push says itself when it was made",
	"submit-batch":      "a push says itself when it was made",
	"check-quota":       "it changes nothing",
	"preview-campaign":  "it changes nothing",
	"simulate-campaign": "it changes nothing",
	"take-limits":       "programs do so all the time, and Redis alone knows of it",
	"refund-limits":     "programs do so all the time, and Redis alone knows of it",
	"reset-limits":      "Redis alone knows of it",
}

// secretText is in all texts that the log must not have.
const secretText = "zibeline"

// logStory is an operation with an entry in the audit log. prepare makes the resources of the operation, and returns its request.
type logStory struct {
	action  auditlog.Action
	prepare func(b *bundle, n int) logRequest
}

type logRequest struct {
	method, path, body string
	headers            []string
	target             string // that the entry names; "": none; "?": the id, or the version, that the answer has
}

func request(method, path, body string, headers ...string) logRequest {
	return logRequest{method: method, path: path, body: body, headers: headers, target: "?"}
}

// about is the request with the target that its entry names.
func (r logRequest) about(target string) logRequest {
	r.target = target
	return r
}

// logStories has all of them.
func logStories() map[string]logStory {
	id := func(b *bundle, r reply) string { return r.at(b.t, "id").(string) }
	booked := func(b *bundle, n int) string {
		return id(b, b.send("POST", "/v1/pushes", `{"recipient":"`+fmt.Sprintf("person-%d", n)+`","send_at":"`+b.in(time.Hour)+`","channel":"sms","to":"+45 `+secretText+`","message":{"body":"`+secretText+`"},"metadata":{"x":"`+secretText+`"}}`).must(b.t, 201))
	}
	webhook := func(b *bundle) string {
		b.exec(`UPDATE webhooks SET deleted_at = now()`)
		return id(b, b.send("POST", "/v1/webhooks", `{"url":"https://example.com/`+secretText+`","events":["push.scheduled"]}`).must(b.t, 201))
	}
	schedule := func(b *bundle, n int) string {
		return id(b, b.send("POST", "/v1/schedules", scheduleText(n)).must(b.t, 201))
	}
	campaign := func(b *bundle, acts ...string) string {
		made := id(b, b.send("POST", "/v1/campaigns", campaignText).must(b.t, 201))
		b.send("PUT", "/v1/campaigns/"+made+"/audience", "recipient,name\nanna,"+secretText+"\n", "Content-Type", "text/csv").must(b.t, 200)
		for _, act := range acts {
			b.send("POST", "/v1/campaigns/"+made+"/"+act, "").must(b.t, 202)
		}
		return made
	}
	key := func(b *bundle) string {
		b.exec(`DELETE FROM api_keys WHERE name <> ''`)
		return id(b, b.send("POST", "/v1/keys", `{"scopes":["pushes:read"],"name":"office"}`).must(b.t, 201))
	}
	acting := func(action auditlog.Action, before ...string) logStory {
		return logStory{action, func(b *bundle, _ int) logRequest {
			made := campaign(b, before...)
			return request("POST", "/v1/campaigns/"+made+"/"+strings.TrimPrefix(string(action), "campaign."), "").about(made)
		}}
	}
	stories := userStories()
	maps.Copy(stories, map[string]logStory{
		"create-key": {auditlog.KeyCreate, func(b *bundle, _ int) logRequest {
			b.exec(`DELETE FROM api_keys WHERE name <> ''`)
			return request("POST", "/v1/keys", `{"scopes":["pushes:read"],"name":"office"}`)
		}},
		"rotate-key": {auditlog.KeyRotate, func(b *bundle, _ int) logRequest {
			made := key(b)
			return request("POST", "/v1/keys/"+made+"/rotate", "").about(made)
		}},
		"revoke-key": {auditlog.KeyRevoke, func(b *bundle, _ int) logRequest {
			made := key(b)
			return request("DELETE", "/v1/keys/"+made, "").about(made)
		}},
		"put-channel": {auditlog.ChannelCreate, func(_ *bundle, n int) logRequest {
			name := fmt.Sprintf("log-%d", n)
			return request("PUT", "/v1/channels/"+name, `{"type": "webhook", "url": "https://example.com/`+secretText+`"}`).about(name)
		}},
		"delete-channel": {auditlog.ChannelDelete, func(b *bundle, n int) logRequest {
			name := ownChannel(b, n)
			return request("DELETE", "/v1/channels/"+name, "").about(name)
		}},
		"test-channel": {auditlog.ChannelTest, func(b *bundle, n int) logRequest {
			name := ownChannel(b, n)
			return request("POST", "/v1/channels/"+name+"/test", `{"to": "`+secretText+`", "message": {"body": "`+secretText+`"}}`).about(name)
		}},
		"create-webhook": {auditlog.WebhookCreate, func(b *bundle, _ int) logRequest {
			b.exec(`UPDATE webhooks SET deleted_at = now()`)
			return request("POST", "/v1/webhooks", `{"url":"https://example.com/`+secretText+`","events":["push.sent"]}`)
		}},
		"delete-webhook": {auditlog.WebhookDelete, func(b *bundle, _ int) logRequest {
			made := webhook(b)
			return request("DELETE", "/v1/webhooks/"+made, "").about(made)
		}},
		"enable-webhook": {auditlog.WebhookEnable, func(b *bundle, _ int) logRequest {
			made := webhook(b)
			return request("POST", "/v1/webhooks/"+made+"/enable", "").about(made)
		}},
		"rotate-webhook-secret": {auditlog.WebhookRotateSecret, func(b *bundle, _ int) logRequest {
			made := webhook(b)
			return request("POST", "/v1/webhooks/"+made+"/rotate-secret", "").about(made)
		}},
		"test-webhook": {auditlog.WebhookTest, func(b *bundle, _ int) logRequest {
			made := webhook(b)
			return request("POST", "/v1/webhooks/"+made+"/test", "").about(made)
		}},
		"replay-webhook-delivery": {auditlog.WebhookReplay, func(b *bundle, n int) logRequest {
			made := webhook(b)
			booked(b, n)
			one := b.send("GET", "/v1/webhooks/"+made+"/deliveries", "").must(b.t, 200).at(b.t, "deliveries", 0, "id").(string)
			return request("POST", "/v1/webhooks/"+made+"/deliveries/"+one+"/replay", "").about(made)
		}},
		"replay-failed-webhook-deliveries": {auditlog.WebhookReplay, func(b *bundle, n int) logRequest {
			made := webhook(b)
			booked(b, n)
			b.exec(`UPDATE webhook_deliveries SET status = 'failed', ended_at = now()`)
			return request("POST", "/v1/webhooks/"+made+"/replay", `{"since":"`+b.in(-time.Hour)+`"}`).about(made)
		}},
		"put-policy": {auditlog.PolicyChange, func(b *bundle, _ int) logRequest {
			b.send("DELETE", "/v1/policy", "").must(b.t, 200)
			return request("PUT", "/v1/policy", `{"rules":[{"name":"per-hour","limit":100,"window":"1h"}]}`)
		}},
		"delete-policy": {auditlog.PolicyReset, func(b *bundle, _ int) logRequest {
			b.send("PUT", "/v1/policy", `{"rules":[{"name":"per-hour","limit":100,"window":"1h"}]}`).must(b.t, 200)
			return request("DELETE", "/v1/policy", "")
		}},
		"create-pause": {auditlog.PauseCreate, func(_ *bundle, n int) logRequest {
			return request("POST", "/v1/pauses", fmt.Sprintf(`{"scope":"category","name":"c%d","reason":"wrong text"}`, n))
		}},
		"delete-pause": {auditlog.PauseEnd, func(b *bundle, n int) logRequest {
			made := b.send("POST", "/v1/pauses", fmt.Sprintf(`{"scope":"category","name":"d%d"}`, n)).must(b.t, 201).at(b.t, "id").(string)
			return request("DELETE", "/v1/pauses/"+made, "").about(made)
		}},
		"create-schedule": {auditlog.ScheduleCreate, func(b *bundle, n int) logRequest { return request("POST", "/v1/schedules", scheduleText(n)) }},
		"change-schedule": {auditlog.ScheduleChange, func(b *bundle, n int) logRequest {
			made := schedule(b, n)
			return request("PATCH", "/v1/schedules/"+made, `{"paused":true,"push":{"recipient":"`+secretText+`","channel":"push","message":{"body":"`+secretText+`!"}}}`).about(made)
		}},
		"delete-schedule": {auditlog.ScheduleDelete, func(b *bundle, n int) logRequest {
			made := schedule(b, n)
			return request("DELETE", "/v1/schedules/"+made, "").about(made)
		}},
		"create-campaign": {auditlog.CampaignCreate, func(*bundle, int) logRequest { return request("POST", "/v1/campaigns", campaignText) }},
		"change-campaign": {auditlog.CampaignChange, func(b *bundle, _ int) logRequest {
			made := campaign(b)
			return request("PATCH", "/v1/campaigns/"+made, `{"name":"summer sale","message":{"title":"`+secretText+`!"}}`).about(made)
		}},
		"put-audience": {auditlog.CampaignAudience, func(b *bundle, _ int) logRequest {
			made := campaign(b)
			return request("PUT", "/v1/campaigns/"+made+"/audience", "recipient,name\nanna,"+secretText+"\nbert,"+secretText+"\n", "Content-Type", "text/csv").about(made)
		}},
		"delete-campaign": {auditlog.CampaignDelete, func(b *bundle, _ int) logRequest {
			made := campaign(b)
			return request("DELETE", "/v1/campaigns/"+made, "").about(made)
		}},
		"start-campaign":  acting(auditlog.CampaignStart),
		"pause-campaign":  acting(auditlog.CampaignPause, "start"),
		"resume-campaign": acting(auditlog.CampaignResume, "start", "pause"),
		"cancel-campaign": acting(auditlog.CampaignCancel, "start"),
		"put-recipient": {auditlog.RecipientPut, func(b *bundle, n int) logRequest {
			who := fmt.Sprintf("described-%d", n)
			return request("PUT", "/v1/recipients/"+who, `{"time_zone":"Asia/Tokyo","addresses":{"sms":"+45 `+secretText+`"},"attributes":{"plan":"`+secretText+`"},"opt_outs":{"channels":["sms"]}}`).about(who)
		}},
		"import-recipients": {auditlog.RecipientImport, func(b *bundle, n int) logRequest {
			return request("POST", "/v1/recipients/import", fmt.Sprintf("recipient,attribute.plan\n%s-%d,%[1]s\n", secretText, n), "Content-Type", "text/csv").about("")
		}},
		"put-suppression": {auditlog.SuppressionPut, func(b *bundle, n int) logRequest {
			return request("PUT", "/v1/suppressions", fmt.Sprintf(`{"channel":"sms","address":"%s-%d"}`, secretText, n)).about("sms")
		}},
		"delete-suppression": {auditlog.SuppressionDelete, func(b *bundle, n int) logRequest {
			b.suppress("sms", fmt.Sprintf("%s-gone-%d", secretText, n)).must(b.t, 201)
			return request("DELETE", fmt.Sprintf("/v1/suppressions?channel=sms&address=%s-gone-%d", secretText, n), "").about("sms")
		}},
		"import-suppressions": {auditlog.SuppressionImport, func(b *bundle, n int) logRequest {
			return request("POST", "/v1/suppressions/import", fmt.Sprintf("channel,address\nsms,%s-%d\n", secretText, n), "Content-Type", "text/csv").about("")
		}},
		"erase-recipient": {auditlog.RecipientErase, func(b *bundle, n int) logRequest {
			who := fmt.Sprintf("%s-%d", secretText, n)
			b.send("PUT", "/v1/recipients/"+who, `{"attributes":{"plan":"gold"}}`).must(b.t, 201)
			return request("DELETE", "/v1/recipients/"+who, "").about("")
		}},
		"create-bulk-change": {auditlog.BulkCreate, func(b *bundle, _ int) logRequest {
			b.exec(`DELETE FROM bulk_changes`)
			return request("POST", "/v1/bulk-changes", `{"action":"move","shift":"1h","filter":{"recipient":"`+secretText+`","category":"c"}}`)
		}},
		"cancel-bulk-change": {auditlog.BulkCancel, func(b *bundle, _ int) logRequest {
			b.exec(`DELETE FROM bulk_changes`)
			made := id(b, b.send("POST", "/v1/bulk-changes", `{"action":"cancel","all":true}`).must(b.t, 202))
			return request("POST", "/v1/bulk-changes/"+made+"/cancel", "").about(made)
		}},
		"cancel-push": {auditlog.PushCancel, func(b *bundle, n int) logRequest {
			made := booked(b, n)
			return request("POST", "/v1/pushes/"+made+"/cancel", "").about(made)
		}},
		"reschedule-push": {auditlog.PushMove, func(b *bundle, n int) logRequest {
			made := booked(b, n)
			return request("PATCH", "/v1/pushes/"+made, `{"send_at":"`+b.in(400*time.Hour)+`"}`).about(made) // into another table
		}},
		"retry-push": {auditlog.PushRetry, func(b *bundle, n int) logRequest {
			who := fmt.Sprintf("failing-%d", n)
			made := id(b, b.send("POST", "/v1/pushes", pushBody(who, b.in(0), "")).must(b.t, 201))
			b.attempt(who, refusedForGood)
			return request("POST", "/v1/pushes/"+made+"/retry", `{"send_at":"`+b.in(2*time.Hour)+`"}`).about(made)
		}},
	})
	return stories
}

const campaignText = `{"name":"sale","message":{"title":"` + secretText + `"},"metadata":{"x":"` + secretText + `"}}`

func scheduleText(n int) string {
	return fmt.Sprintf(`{"name":"for %s %d","cron":"0 9 * * MON","time_zone":"Europe/Berlin","push":{"recipient":"%[1]s-%d","channel":"push","message":{"body":"%[1]s"}}}`, secretText, n)
}

// ownChannel makes a channel of the tenant.
func ownChannel(b *bundle, n int) (name string) {
	b.t.Helper()
	name = fmt.Sprintf("own-%d", n)
	b.send("PUT", "/v1/channels/"+name, `{"type": "log"}`).must(b.t, 201)
	return name
}
