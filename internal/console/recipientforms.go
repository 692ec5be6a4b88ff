package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/sendquota/sendquota/client"
)

// submitPush books a push for the recipient, or only says what that would do.
func submitPush(p *page) error {
	id := p.param("id")
	if err := p.zoneOfForm(id); err != nil {
		return err
	}
	var bad faults
	at, err := p.FormTime("send_at")
	bad.add("send_at", err)
	message, err := p.FormMessage()
	bad.add("message", err)
	one := client.NewPush{
		Recipient: id, Channel: p.Field("channel"), Category: p.Field("category"), To: p.Field("to"), Message: message, SendAt: at,
		OnConflict: client.NewPushOnConflict(p.Field("on_conflict")),
	}
	if len(bad) > 0 {
		return recipientAgain(p, at, bad.problem())
	}
	if p.Field("do") == "check" {
		checked, err := p.api.Pushes.ValidateSubmit(p.ctx(), one)
		if err != nil {
			return recipientAgain(p, at, err)
		}
		p.Notice = "It would be scheduled for " + p.PlainTime(checked.SendAt) + ". Nothing was scheduled yet."
		return recipientAgain(p, checked.SendAt, nil)
	}
	booked, err := p.api.Pushes.Submit(p.ctx(), p.Field("once"), one)
	if err != nil {
		return recipientAgain(p, at, err)
	}
	v := recipientView{ID: id, p: p}
	return p.done("Scheduled for "+p.PlainTime(booked.SendAt)+".", v.Link("", "cursor", rfc3339(booked.SendAt), "at", rfc3339(booked.SendAt)))
}

// movePush moves a push to another send time. First it asks what that would do: a refusal moves nothing, and is shown on the axis.
func movePush(p *page) error {
	id := p.param("id")
	if err := p.zoneOfForm(id); err != nil {
		return err
	}
	to, err := p.FormTime("move_to")
	if err != nil {
		var bad faults
		bad.add("move_to", err)
		return recipientAgain(p, time.Time{}, bad.problem())
	}
	one := p.Query("move")
	if _, err := p.api.Pushes.ValidateReschedule(p.ctx(), one, client.NewTime{SendAt: to}); err != nil {
		return recipientAgain(p, to, atField(err, "send_at", "move_to"))
	}
	moved, err := p.api.Pushes.Reschedule(p.ctx(), one, client.NewTime{SendAt: to})
	if err != nil {
		return recipientAgain(p, to, atField(err, "send_at", "move_to"))
	}
	v := recipientView{ID: id, p: p}
	return p.done("Moved to "+p.PlainTime(moved.SendAt)+".", v.Link("", "move", "", "cursor", rfc3339(moved.SendAt), "at", rfc3339(moved.SendAt)))
}

// cancelOnAxis cancels a push, and goes back to the axis.
func cancelOnAxis(p *page) error {
	if err := p.zoneOfForm(p.param("id")); err != nil {
		return err
	}
	gone, err := p.api.Pushes.Cancel(p.ctx(), p.Query("cancel"))
	if err != nil {
		return recipientAgain(p, time.Time{}, err)
	}
	v := recipientView{ID: p.param("id"), p: p}
	return p.done("The message of "+p.PlainTime(gone.SendAt)+" is canceled and no longer counts towards limits.", v.Link("", "cancel", "", "at", rfc3339(gone.SendAt)))
}

// recipientAgain shows the axis with a form that was not accepted, or that was only to be checked.
func recipientAgain(p *page, cursor time.Time, why error) error {
	view, err := readRecipient(p, cursor.UTC().Truncate(time.Second))
	if err != nil {
		return errors.Join(why, err)
	}
	if why == nil {
		return p.show("recipient", view.ID, view)
	}
	return p.again(why, "recipient", view.ID, view)
}

// freeWithout answers the script of the axis when a push is dragged: what would be free without it.
func freeWithout(p *page) error {
	one, err := p.api.Pushes.Get(p.ctx(), p.Query("without"))
	if err != nil {
		return err
	}
	o := client.RecipientAvailabilityOptions{From: cursorOf(p, "from"), Until: cursorOf(p, "until"), Channel: one.Channel, Category: one.Category, Without: one.ID}
	found, err := p.api.Quota.RecipientAvailability(p.ctx(), p.param("id"), o)
	if err != nil {
		return err
	}
	var answer struct {
		Free  [][2]int64 `json:"free"`
		Rules []axisRule `json:"rules"`
	}
	answer.Free, answer.Rules = freeAndRules(found)
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	p.sent = true
	p.w.Header().Set("Content-Type", "application/json")
	p.w.WriteHeader(http.StatusOK)
	_, _ = p.w.Write(text)
	return nil
}
