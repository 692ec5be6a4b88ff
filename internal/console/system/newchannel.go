package system

import (
	"errors"
	"slices"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
)

// newChannelView is the choice of a type, and then the form of it.
type newChannelView struct {
	Types []string
	Form  *channelForm // nil: no type is chosen
}

func showNewChannel(p *frame.Page) error {
	bounds, err := readBounds(p)
	if err != nil {
		return err
	}
	view := &newChannelView{Types: bounds.Types}
	if form, ok := formOf(p.Query("type"), bounds); ok {
		form.fill(nil)
		view.Form = &form
	}
	return p.Show("settingschannelnew", "New channel", view)
}

// createChannel stores a new channel. It replaces no channel, unlike the call that it makes.
func createChannel(p *frame.Page) error {
	bounds, err := readBounds(p)
	if err != nil {
		return err
	}
	form, ok := formOf(p.Field("type"), bounds)
	if !ok {
		return p.Redirect(p.Link(newChannel))
	}
	name := p.Field("name")
	var bad frame.Faults
	if old, err := readChannel(p, name); err == nil && old.Owner == "tenant" {
		bad.Add("name", errors.New("is the name of a channel that you have already"))
	}
	members, as := form.read(p.Request.PostForm), name
	if len(bad) > 0 {
		as += "!" // which no channel has: the API finds what else is wrong, and stores nothing
	}
	if _, err = p.API.Channels.Put(form.context(p, members), as, members); len(bad) > 0 {
		err = withoutName(err)
	}
	if err := bad.Both(form.atFields(err)); err != nil {
		form.take(p.Request.PostForm)
		return p.ShowAgain(err, "settingschannelnew", "New channel", &newChannelView{Types: bounds.Types, Form: &form})
	}
	return p.Done("Channel created. Send a test message through it.", p.Link(ownChannel+frame.PathPart(name)))
}

// withoutName returns an error without the fault of the name in the path.
func withoutName(err error) error {
	var invalid *client.Invalid
	if errors.As(err, &invalid) {
		invalid.Errors = slices.DeleteFunc(invalid.Errors, func(f client.Fault) bool { return f.Location == "path.name" })
	}
	return err
}
