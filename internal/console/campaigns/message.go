package campaigns

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// messageForm is the message of a draft, in the fields that its channel wants.
type messageForm struct {
	Channel client.Channel
	Fields  []messageField
	More    string // the other members, as JSON
}

// Texts reports whether the channel sends text messages.
func (f messageForm) Texts() bool { return string(f.Channel.Type) == "sms" }

// messageField is a text of the message.
type messageField struct {
	Name, Label, Hint string
	Long              bool
	Value             string
}

// MessageName returns the name of a message field in the form and in the API.
func (f messageField) MessageName() string { return "message." + f.Name }

// messageFieldsOf are the texts that a channel of a type sends. Others go along as JSON.
func messageFieldsOf(kind client.ChannelType) []messageField {
	switch string(kind) {
	case "sms":
		return []messageField{{Name: "body", Label: "Text", Hint: "Characters outside the GSM alphabet, such as emoji, need more SMS parts.", Long: true}}
	case "email":
		return []messageField{
			{Name: "title", Label: "Subject"}, {Name: "body", Label: "Text", Hint: "For programs that do not show HTML.", Long: true},
			{Name: "html", Label: "HTML", Hint: "Placeholder values are escaped.", Long: true},
		}
	}
	return []messageField{{Name: "title", Label: "Title"}, {Name: "body", Label: "Text", Long: true}}
}

// newCampaign is the form for another campaign.
func newCampaign(p *frame.Page) error { return showMessage(p, newDraftView(client.Campaign{})) }

// showMessage shows the message of a draft, or of one that is to be.
func showMessage(p *frame.Page, v *draftView) error {
	if err := fillMessage(p, v); err != nil {
		return err
	}
	return showDraft(p, "message", v)
}

// fillMessage makes the form of the message.
func fillMessage(p *frame.Page, v *draftView) error {
	var report client.ChannelReport
	if err := p.API.Get(p.Context(), "/v1/channels", nil, &report); err != nil {
		return err
	}
	v.Channels, v.AskedChannel = report.Channels, cmp.Or(p.Field("channel"), p.Query("channel"))
	form := messageForm{Channel: v.channelOf()}
	form.Fields = messageFieldsOf(form.Channel.Type)
	rest := map[string]any{}
	for name, value := range v.Message {
		rest[name] = value
	}
	for i := range form.Fields {
		f := &form.Fields[i]
		if text, ok := rest[f.Name].(string); ok {
			f.Value = text
			delete(rest, f.Name)
		}
	}
	if len(rest) > 0 {
		var text strings.Builder
		out := json.NewEncoder(&text)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		if err := out.Encode(rest); err != nil {
			return err
		}
		form.More = strings.TrimSpace(text.String())
	}
	v.Form = form
	return nil
}

// otherFields reports whether the form must first be shown with the fields of another channel, so that input for the previous channel is
// not dropped unseen.
func otherFields(p *frame.Page) bool {
	return p.Field("do") == "fields" || p.Field("shown_for") != p.Field("channel")
}

// createCampaign makes a draft of a message.
func createCampaign(p *frame.Page) error {
	v := newDraftView(client.Campaign{})
	if err := fillMessage(p, v); err != nil {
		return err
	}
	if otherFields(p) {
		return showDraft(p, "message", v)
	}
	message, err := readMessageForm(p, v)
	var made client.Campaign
	if err == nil {
		made, err = p.API.Campaigns.Create(p.Context(), p.Field("once"), client.NewCampaign{Name: p.Field("name"), Channel: p.Field("channel"), Category: p.Field("category"), Message: message})
	}
	if err != nil {
		return againDraft(p, err, "message", v)
	}
	return p.Done("Saved. Next: the audience.", p.Link("/campaigns/"+made.ID+"/audience"))
}

// changeMessage changes the message of a draft.
func changeMessage(p *frame.Page, v *draftView) error {
	if err := fillMessage(p, v); err != nil {
		return err
	}
	if otherFields(p) {
		return showDraft(p, "message", v)
	}
	message, err := readMessageForm(p, v)
	if err == nil {
		_, err = p.API.Campaigns.ChangeAsOf(p.Context(), v.ID, p.ShownAt(), client.CampaignChange{Name: p.Field("name"), Channel: p.Field("channel"), Category: p.Field("category"), Message: message})
	}
	if err != nil {
		return againDraft(p, frame.ExplainStale(err), "message", v)
	}
	next := "audience"
	if v.Audience > 0 {
		next = "preview"
	}
	return p.Done("Saved.", p.Link("/campaigns/"+v.ID+"/"+next))
}

// readMessageForm reads the message. It converts the line ends of browsers.
func readMessageForm(p *frame.Page, v *draftView) (client.Message, error) {
	var wrong frame.Faults
	message := client.Message{}
	if more := p.Field("message.more"); more != "" {
		wrong.Add("message.more", frame.ReadObject(more, message))
	}
	for _, f := range v.Form.(messageForm).Fields {
		text := strings.ReplaceAll(p.Request.PostForm.Get(f.MessageName()), "\r\n", "\n")
		if strings.TrimSpace(text) == "" {
			continue
		}
		if _, twice := message[f.Name]; twice {
			wrong.Add("message.more", fmt.Errorf("%s is set here and in the field %s", f.Name, f.Label))
		}
		message[f.Name] = text
	}
	return message, wrong.Problem()
}
