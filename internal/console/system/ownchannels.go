package system

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/push"
)

const (
	channelsPage = "/settings/channels"
	newChannel   = "/settings/channels/new"
	ownChannel   = "/settings/channels/own/"
)

// ownChannelView is a channel of the team.
type ownChannelView struct {
	Name, Owner, Type    string
	Disabled             bool
	Problem              string
	CreatedAt, UpdatedAt time.Time

	Form   *channelForm          // nil: the operator allows no such type any more
	Test   *client.ChannelTest   // the outcome of a test
	InUse  int64                 // pushes that are booked for the channel, after an attempt to delete it
	Parts  []testPart            // of the message of a test
	Facts  []channelField        // settings for roles that cannot change them
	bounds client.TenantChannels // of the installation
	all    map[string]any
}

// testPart is a field of the message of a test.
type testPart struct{ Name, Label, Text string }

// testParts are the parts of a message that the types send.
var testParts = map[string][]testPart{
	"sms":   {{"body", "Text", "This is a test."}},
	"email": {{"title", "Subject", "Test"}, {"body", "Text", "This is a test."}},
	"":      {{"title", "Title", "Test"}, {"body", "Text", "This is a test."}},
}

// To is the label for the address of a test.
func (v *ownChannelView) To() string {
	switch v.Type {
	case "sms":
		return "Telephone number"
	case "email":
		return "E-mail address"
	case "fcm":
		return "Registration token"
	case "apns":
		return "Device token"
	}
	return "Address (optional)"
}

// typeWords names a type of channel.
func typeWords(of string) string {
	names := map[string]string{"webhook": "Webhook", "sms": "Text messages (Twilio)", "email": "E-mail (SMTP)", "fcm": "Firebase Cloud Messaging", "apns": "Apple Push Notification service", "log": "Log"}
	return cmp.Or(names[of], of)
}

// problemSentence describes the problem of a channel.
func problemSentence(problem string) string {
	return strings.ToUpper(problem[:1]) + problem[1:] + ". Its messages wait, and none goes through another channel."
}

func readBounds(p *frame.Page) (client.TenantChannels, error) {
	report, err := p.API.Channels.List(p.Context())
	return report.TenantChannels, err
}

// readChannel reads a channel.
func readChannel(p *frame.Page, name string) (*ownChannelView, error) {
	var text json.RawMessage
	if err := p.API.Get(p.Context(), "/v1/channels/"+frame.PathPart(name), nil, &text); err != nil {
		return nil, err
	}
	var one struct {
		Name, Owner, Type string
		Disabled          bool
		Problem           string
		CreatedAt         time.Time `json:"created_at"`
		UpdatedAt         time.Time `json:"updated_at"`
	}
	v := &ownChannelView{}
	if err := errors.Join(json.Unmarshal(text, &one), json.Unmarshal(text, &v.all)); err != nil {
		return nil, err
	}
	v.Name, v.Owner, v.Type, v.Disabled, v.Problem, v.CreatedAt, v.UpdatedAt = one.Name, one.Owner, one.Type, one.Disabled, one.Problem, one.CreatedAt, one.UpdatedAt
	return v, nil
}

// readOwn reads a channel of the team with its form.
func readOwn(p *frame.Page) (*ownChannelView, error) {
	v, err := readChannel(p, p.Param("name"))
	if err != nil {
		return nil, err
	}
	if v.Owner != "tenant" {
		return nil, &client.Problem{Title: "Not your channel", Status: http.StatusNotFound, Detail: "The operator made this channel, and only the operator can change it."}
	}
	if v.bounds, err = readBounds(p); err != nil {
		return nil, err
	}
	if v.Parts = testParts[v.Type]; v.Parts == nil {
		v.Parts = testParts[""]
	}
	form, ok := formOf(v.Type, v.bounds)
	if !ok {
		return v, nil
	}
	form.fill(v.all)
	v.Form = &form
	form.each(func(c *channelField) {
		// A text, such as a sender, may be the address of a person.
		if plain := c.Input != "text" || c.Default != ""; !c.Secret && plain && c.Value != "" {
			v.Facts = append(v.Facts, *c)
		}
	})
	return v, nil
}

func showChannel(p *frame.Page) error {
	v, err := readOwn(p)
	if err != nil {
		return err
	}
	return p.Show("settingschannel", v.Name, v)
}

// actOnChannel does one of the things that buttons of a channel's page do.
func actOnChannel(p *frame.Page) error {
	v, err := readOwn(p)
	if err != nil {
		return err
	}
	switch p.Field("do") {
	case "save":
		return v.save(p)
	case "disable", "enable":
		return v.enable(p, p.Field("do") == "enable")
	case "test":
		return v.test(p)
	case "delete", "cancel":
		return v.delete(p, p.Field("do") == "cancel")
	}
	return p.Redirect(v.page(p))
}

func (v *ownChannelView) page(p *frame.Page) string {
	return p.Link(ownChannel + frame.PathPart(v.Name))
}

// save stores the settings of the form, unless the channel was changed since the form was drawn.
func (v *ownChannelView) save(p *frame.Page) error {
	if v.Form == nil {
		return p.Redirect(v.page(p))
	}
	members := v.Form.read(p.Request.PostForm)
	if v.Disabled {
		members["disabled"] = true
	}
	err := error(frame.Stale("Another user changed this channel after you opened the page. Nothing was saved. Reload the page to see the latest version."))
	if at := p.ShownAt(); at.Equal(v.UpdatedAt) {
		_, err = p.API.Channels.Put(v.Form.context(p, members), v.Name, members)
	}
	if err != nil {
		v.Form.take(p.Request.PostForm)
		return p.ShowAgain(v.Form.atFields(err), "settingschannel", v.Name, v)
	}
	return p.Done("Channel saved. The change is in force within 2 seconds.", v.page(p))
}

// enable changes whether the channel sends, and nothing else.
func (v *ownChannelView) enable(p *frame.Page, sends bool) error {
	members := client.ChannelSettings{}
	for name, value := range v.all {
		mask, _ := value.(map[string]any)
		_, masked := mask["set"]
		if !masked && !slices.Contains([]string{"name", "owner", "problem", "created_at", "updated_at"}, name) {
			members[name] = value
		}
	}
	members["disabled"] = !sends
	if _, err := p.API.Channels.Put(p.Context(), v.Name, members); err != nil {
		return p.ShowAgain(err, "settingschannel", v.Name, v)
	}
	if sends {
		return p.Done("Channel enabled. Messages that waited are sent now.", v.page(p))
	}
	return p.Done("Channel disabled. Its messages wait from now on.", v.page(p))
}

// test sends a message at once, and shows the outcome.
func (v *ownChannelView) test(p *frame.Page) error {
	var bad frame.Faults
	message, err := p.FormMessage()
	bad.Add("message", err)
	var made client.ChannelTest
	if err = bad.Problem(); err == nil {
		made, err = p.API.Channels.Test(p.Context(), v.Name, client.ChannelTestForm{To: p.Field("to"), Message: client.Message(message)})
	}
	if err != nil {
		return p.ShowAgain(err, "settingschannel", v.Name, v)
	}
	v.Test = &made
	return p.Show("settingschannel", v.Name, v)
}

// delete deletes the channel. If messages are scheduled for it, the page asks whether to cancel them.
func (v *ownChannelView) delete(p *frame.Page, cancel bool) error {
	o := client.ChannelOptions{}
	if cancel {
		o.Pushes = "cancel"
	}
	deleted, err := p.API.Channels.Delete(p.Context(), v.Name, o)
	var used *client.ChannelInUse
	if errors.As(err, &used) && used.Campaigns == 0 && !cancel {
		v.InUse = used.Pushes
		return p.Show("settingschannel", v.Name, v)
	}
	if err != nil {
		return p.ShowAgain(err, "settingschannel", v.Name, v)
	}
	notice := "Channel deleted."
	if deleted.Canceled > 0 {
		notice = fmt.Sprintf("Channel deleted, and %s canceled.", frame.CountWords(deleted.Canceled, "message", "messages"))
	}
	if deleted.Drafts+deleted.Schedules > 0 {
		notice += fmt.Sprintf(" %s and %s name it: from now on they use the operator’s channel of that name, or fail if there is none.",
			frame.CountWords(deleted.Drafts, "draft", "drafts"), frame.CountWords(deleted.Schedules, "schedule", "schedules"))
	}
	return p.Done(notice, p.Link(channelsPage))
}

// mayEditChannels reports whether the user can change the channels of the team.
func mayEditChannels(p *frame.Page) bool { return p.May(push.ScopeChannelsWrite) }
