package people

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// submitPush books a push for the recipient, or previews it.
func submitPush(p *frame.Page) error {
	id := p.Param("id")
	if err := p.ZoneOfForm(id); err != nil {
		return err
	}
	var bad frame.Faults
	at, err := p.FormTime("send_at")
	bad.Add("send_at", err)
	message, err := p.FormMessage()
	bad.Add("message", err)
	one := client.NewPush{
		Recipient: id, Channel: p.Field("channel"), Category: p.Field("category"), To: p.Field("to"), Message: message, SendAt: at,
		OnConflict: client.NewPushOnConflict(p.Field("on_conflict")),
	}
	if len(bad) > 0 {
		return recipientAgain(p, at, bad.Problem())
	}
	if p.Field("do") == "check" {
		checked, err := p.API.Pushes.ValidateSubmit(p.Context(), one)
		if err != nil {
			return recipientAgain(p, at, err)
		}
		p.Notice = "It would be scheduled for " + p.PlainTime(checked.SendAt) + ". Nothing was scheduled yet."
		return recipientAgain(p, checked.SendAt, nil)
	}
	booked, err := p.API.Pushes.Submit(p.Context(), p.Field("once"), one)
	if err != nil {
		return recipientAgain(p, at, err)
	}
	v := recipientView{ID: id, p: p}
	return p.Done("Scheduled for "+p.PlainTime(booked.SendAt)+".", v.Link("", "cursor", frame.RFC3339(booked.SendAt), "at", frame.RFC3339(booked.SendAt)))
}

// movePush moves a push to another send time. First it asks what that would do: a refusal moves nothing, and is shown on the axis.
func movePush(p *frame.Page) error {
	id := p.Param("id")
	if err := p.ZoneOfForm(id); err != nil {
		return err
	}
	to, err := p.FormTime("move_to")
	if err != nil {
		var bad frame.Faults
		bad.Add("move_to", err)
		return recipientAgain(p, time.Time{}, bad.Problem())
	}
	one := p.Query("move")
	if _, err := p.API.Pushes.ValidateReschedule(p.Context(), one, client.NewTime{SendAt: to}); err != nil {
		return recipientAgain(p, to, frame.AtField(err, "send_at", "move_to"))
	}
	moved, err := p.API.Pushes.Reschedule(p.Context(), one, client.NewTime{SendAt: to})
	if err != nil {
		return recipientAgain(p, to, frame.AtField(err, "send_at", "move_to"))
	}
	v := recipientView{ID: id, p: p}
	return p.Done("Moved to "+p.PlainTime(moved.SendAt)+".", v.Link("", "move", "", "cursor", frame.RFC3339(moved.SendAt), "at", frame.RFC3339(moved.SendAt)))
}

// cancelOnAxis cancels a push, and goes back to the axis.
func cancelOnAxis(p *frame.Page) error {
	if err := p.ZoneOfForm(p.Param("id")); err != nil {
		return err
	}
	gone, err := p.API.Pushes.Cancel(p.Context(), p.Query("cancel"))
	if err != nil {
		return recipientAgain(p, time.Time{}, err)
	}
	v := recipientView{ID: p.Param("id"), p: p}
	return p.Done("The message of "+p.PlainTime(gone.SendAt)+" is canceled and no longer counts towards limits.", v.Link("", "cancel", "", "at", frame.RFC3339(gone.SendAt)))
}

// recipientAgain shows the axis with a form that was not accepted, or that was only to be checked.
func recipientAgain(p *frame.Page, cursor time.Time, why error) error {
	view, err := readRecipient(p, cursor.UTC().Truncate(time.Second))
	if err != nil {
		return errors.Join(why, err)
	}
	if why == nil {
		return p.Show("recipient", view.ID, view)
	}
	return p.ShowAgain(why, "recipient", view.ID, view)
}

// freeWithout answers the script of the axis when a push is dragged: what would be free without it.
func freeWithout(p *frame.Page) error {
	one, err := p.API.Pushes.Get(p.Context(), p.Query("without"))
	if err != nil {
		return err
	}
	o := client.RecipientAvailabilityOptions{From: cursorOf(p, "from"), Until: cursorOf(p, "until"), Channel: one.Channel, Category: one.Category, Without: one.ID}
	found, err := p.API.Quota.RecipientAvailability(p.Context(), p.Param("id"), o)
	if err != nil {
		return err
	}
	var answer struct {
		Free  [][2]int64 `json:"free"`
		Rules []AxisRule `json:"rules"`
	}
	answer.Free, answer.Rules = freeAndRules(found)
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	p.Sent = true
	p.Writer.Header().Set("Content-Type", "application/json")
	p.Writer.WriteHeader(http.StatusOK)
	_, _ = p.Writer.Write(text)
	return nil
}
