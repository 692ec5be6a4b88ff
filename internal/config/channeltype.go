package config

import (
	"slices"
	"strings"
)

// kind is a type of channels with the settings that it alone has.
type kind struct {
	name   string
	fields []field
	check  func(place) // what one field can not tell; nil: nothing
}

func (c *Channel) kinds() []kind {
	return []kind{
		{Webhook, c.Webhook.fields(), c.checkWebhook},
		{SMS, c.SMS.fields(), c.checkSMS},
		{Email, c.Email.fields(), c.checkEmail},
		{FCM, c.FCM.fields(), c.checkFCM},
		{APNs, c.APNs.fields(), c.checkAPNs},
		{Log, nil, nil},
	}
}

// everything is the settings of all types, for documentation: those that belong
// to a type say so.
func (c *Channel) everything() []field {
	all := c.fields()
	for _, k := range c.kinds() {
		for _, f := range k.fields {
			f.meaning = k.name + ": " + f.meaning
			all = append(all, f)
		}
	}
	return all
}

// read reads a channel: what its type is, and then what belongs to that.
func (c *Channel) read(p place) {
	if !p.isMapping("with a type and the settings of that type") {
		return
	}
	shared := c.fields()
	for _, f := range shared {
		f.read(p.child(f.name))
	}
	kinds := c.kinds()
	own := slices.IndexFunc(kinds, func(k kind) bool { return k.name == c.Type })
	if own < 0 { // what else stands here can not be judged
		return
	}
	allowed := append(names(shared), names(kinds[own].fields)...)
	for _, child := range p.children() {
		switch {
		case slices.Contains(allowed, child.name):
		case slices.Contains(names(c.everything()), child.name):
			child.refuse("is not for type %s", c.Type)
		default:
			child.refuse("is not a setting; %s", suggest(child.name, allowed))
		}
	}
	for _, f := range kinds[own].fields {
		f.read(p.child(f.name))
	}
	if kinds[own].check != nil {
		kinds[own].check(p)
	}
}

// oneOfTwo faults two settings that stand for each other, where both or neither
// is given. It reports whether there is one.
func (p place) oneOfTwo(first, second string) bool {
	a, b := p.child(first), p.child(second)
	switch {
	case a.given() && b.given():
		b.refuse("is not allowed beside %s", first)
	case !a.given() && !b.given():
		a.refuse("is required, or %s", second)
	default:
		return true
	}
	return false
}

// together faults a setting that needs another one.
func (p place) together(first, second string) {
	if a, b := p.child(first), p.child(second); a.given() && !b.given() {
		b.refuse("is required beside %s", first)
	}
}

// encrypted faults a URL over which secrets would go in the clear through the
// world.
func (c *Channel) encrypted(p place, setting, url string) {
	if url != "" && !strings.HasPrefix(url, "https:") && !c.AllowPrivateAddresses {
		p.child(setting).fault("must begin with https://, unless allow_private_addresses is true")
	}
}
