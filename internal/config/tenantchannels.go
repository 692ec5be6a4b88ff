package config

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// TenantChannels bounds the channels that tenants make.
type TenantChannels struct {
	Max                   int      // of a tenant; 0: tenants make none
	Types                 []string // that they may have
	AllowPrivateAddresses bool     // permits loopback and private networks

	Shown bool `json:"-"` // not from the file: a channel is only shown, and its addresses are not checked again

	Checks ChannelChecks `json:"-"` // not from the file
}

// ChannelChecks are checks that need other packages. Each returns an error message, or "".
type ChannelChecks struct {
	Host              func(host string) string // of a provider that must be public
	AppleKey          func(text string) string
	GoogleCredentials func(text string) string
}

func (t *TenantChannels) settings(table *strictyaml.Table) {
	table.Int("max", "20", "maximum number of channels of a tenant, 0 to 1000; 0: tenants make none", &t.Max, 0, 1000)
	table.SomeOf("types", "[webhook, sms, email, fcm, apns]", "the types that they may have", &t.Types, Webhook, SMS, Email, FCM, APNs, Log)
	table.Bool("allow_private_addresses", "false", "whether they may connect to loopback and private networks", &t.AllowPrivateAddresses)
}

// TenantChannel is a tenant's channel in the form that is stored.
type TenantChannel struct {
	Settings json.RawMessage   // the given members, without secrets
	Secrets  map[string]Secret // the texts of the secrets, by member
}

// ReadTenantChannel reads a tenant's channel from the object that the tenant sent. before is the stored channel, whose
// secrets stay if the object leaves them out; nil: it is new. The errors are relative to the object.
func (t TenantChannels) ReadTenantChannel(name string, object []byte, before *TenantChannel, lease time.Duration) (c Channel, stored TenantChannel, bad invalid.FieldErrors, err error) {
	c = Channel{Name: name, Own: &t}
	var kept map[string]Secret
	if before != nil {
		kept = t.keptBy(object, *before)
		defer func() {
			if err == nil {
				bad = explained(bad, object, *before, kept)
			}
		}()
	}
	bad, err = strictyaml.ReadObject(object, kept, func(table *strictyaml.Table) {
		c.ownSettings(table)
		table.Check(func(p strictyaml.Node) { c.limitTimeout(p, lease/2) })
	})
	if err != nil || len(bad) > 0 {
		return c, stored, bad, err
	}
	stored.Secrets = map[string]Secret{}
	c.Members(func(name string, s Secret) any {
		stored.Secrets[name] = s
		return nil
	})
	stored.Settings, err = withoutSecrets(object, stored.Secrets)
	return c, stored, nil, err
}

// OpenTenantChannel reads a stored channel.
func (t TenantChannels) OpenTenantChannel(name string, stored TenantChannel, lease time.Duration) (Channel, invalid.FieldErrors, error) {
	c, _, bad, err := t.ReadTenantChannel(name, stored.Settings, &stored, lease)
	return c, bad, err
}

// Members returns the settings of a tenant's channel as answers show them. show returns the form of a secret.
func (c *Channel) Members(show func(name string, s Secret) any) json.RawMessage {
	of := *c
	if of.Own == nil {
		of.Own = &TenantChannels{}
	}
	return strictyaml.Values(of.ownSettings, show)
}

// readOnly lists members of answers that are no settings.
var readOnly = []string{"name", "owner", "state", "problem", "created_at", "updated_at", "booked"}

// ownSettings lists the settings of a tenant's channel.
func (c *Channel) ownSettings(t *strictyaml.Table) {
	cases := slices.DeleteFunc(c.cases(), func(v strictyaml.Case) bool { return !slices.Contains(c.Own.Types, v.Value) })
	t.Switch("type", strings.Join(c.Own.Types, ", "), &c.Type, cases)
	c.common(t)
	t.Bool("disabled", "false", "true: nothing is sent, and pushes wait", &c.Disabled)
	t.Unsupported("offered_to", "is for channels of the operator only")
	for _, name := range readOnly {
		t.Unsupported(name, "is a part of answers only: leave it out")
	}
	t.Check(c.checkPublic)
}

// checkPublic rejects private addresses, unless the operator allows them.
func (c *Channel) checkPublic(p strictyaml.Node) {
	if c.Own.Shown {
		return
	}
	if c.AllowPrivateAddresses {
		if !c.Own.AllowPrivateAddresses {
			p.Child("allow_private_addresses").BadValue("must be false: the operator allows public addresses only")
		}
		return
	}
	for _, of := range [][2]string{
		{"url", string(c.Webhook.URL)}, {"host", c.Email.Host}, {"base_url", c.SMS.BaseURL + c.FCM.BaseURL + c.APNs.BaseURL}, {"token_url", c.FCM.TokenURL},
	} {
		if host := hostIn(of[1]); host != "" && c.Own.Checks.Host != nil {
			if wrong := c.Own.Checks.Host(host); wrong != "" {
				p.Child(of[0]).BadKey("%s", wrong)
			}
		}
	}
	c.checkTokenURI(p)
}

// checkTokenURI checks the URL in the credentials of Google, which gets a request signed by their key.
func (c *Channel) checkTokenURI(p strictyaml.Node) {
	var account struct {
		TokenURI string `json:"token_uri"`
	}
	if c.FCM.TokenURL != "" || json.Unmarshal([]byte(c.FCM.Credentials), &account) != nil || account.TokenURI == "" {
		return
	}
	if !strings.HasPrefix(account.TokenURI, "https:") {
		p.Child("credentials").BadKey("has a token_uri that does not begin with https://")
		return
	}
	if wrong := c.Own.Checks.Host; wrong != nil && wrong(hostIn(account.TokenURI)) != "" {
		p.Child("credentials").BadKey("has a token_uri that %s", wrong(hostIn(account.TokenURI)))
	}
}

// secretFile is a secret that the operator may keep in a file.
type secretFile struct {
	name, meaning     string
	to                *Secret
	file, fileMeaning string
	path              *string
}

// secretOrFile adds a secret and the path of a file with it, of which one is required. A tenant cannot name a file of the
// operator.
func (c *Channel) secretOrFile(t *strictyaml.Table, s secretFile) {
	if c.Own == nil {
		t.Secret(s.name, optional, s.meaning, s.to, checkNotEmpty)
		t.String(s.file, optional, s.fileMeaning, s.path, checkPath)
		t.Either(s.name, s.file)
		return
	}
	check := map[string]func(string) string{"key": c.Own.Checks.AppleKey, "credentials": c.Own.Checks.GoogleCredentials}[s.name]
	if check == nil {
		check = checkNotEmpty
	}
	t.Secret(s.name, required, s.meaning, s.to, check)
	t.Unsupported(s.file, "is for channels of the operator only: send the text as "+s.name)
}

// sentTo names the members whose host gets a secret, by type. A secret does not stay if its host changes: otherwise a
// caller who does not know it could send it to a server of its own.
var sentTo = map[string]map[string][]string{
	SMS:   {"base_url": {"account_sid", "auth_token", "api_key_sid", "api_key_secret"}},
	Email: {"host": {"username", "password"}},
	FCM:   {"base_url": {"credentials"}, "token_url": {"credentials"}},
	APNs:  {"base_url": {"key"}},
}

// keptBy returns the secrets of the stored channel that the object may leave out.
func (t TenantChannels) keptBy(object []byte, before TenantChannel) map[string]Secret {
	var is, was map[string]any
	if json.Unmarshal(object, &is) != nil || json.Unmarshal(before.Settings, &was) != nil || is["type"] != was["type"] {
		return nil
	}
	kept := map[string]Secret{}
	for name, secret := range before.Secrets {
		if !ofOtherEvents(name, is, was) {
			kept[name] = secret
		}
	}
	of, _ := is["type"].(string)
	for member, secrets := range sentTo[of] {
		if hostIn(is[member]) != hostIn(was[member]) {
			for _, name := range secrets {
				delete(kept, name)
			}
		}
	}
	return kept
}

// explained returns the errors of an object with a reason for each secret that it leaves out, and that is not kept because its host has
// changed, or because no key opens it.
func explained(bad invalid.FieldErrors, object []byte, before TenantChannel, kept map[string]Secret) invalid.FieldErrors {
	var is, was map[string]any
	if json.Unmarshal(object, &is) != nil || json.Unmarshal(before.Settings, &was) != nil || is["type"] != was["type"] {
		return bad
	}
	all := slices.Clone(bad)
	for _, name := range slices.Sorted(maps.Keys(before.Secrets)) {
		if _, given := is[name]; given || kept[name] != "" || ofOtherEvents(name, is, was) {
			continue
		}
		at := slices.IndexFunc(all, func(e invalid.FieldError) bool { return e.Field == name })
		message := "the stored secret is not sent to another host: send it again"
		if before.Secrets[name] == "" {
			message = "must be sent again, or be null to remove it: the stored secret cannot be opened"
		}
		switch {
		case at >= 0:
			all[at].Message = message
		case before.Secrets[name] == "" || is["type"] != SMS: // which needs one of several
			all.Add(name, nil, "%s", message)
		}
	}
	return all
}

// ShownTenantChannel reads a stored channel for an answer, also if the operator does not allow it any more, or if no key opens its
// secrets: those are empty.
func (t TenantChannels) ShownTenantChannel(name string, stored TenantChannel) (Channel, invalid.FieldErrors, error) {
	t.Types, t.Shown, t.Checks = []string{Webhook, SMS, Email, FCM, APNs, Log}, true, ChannelChecks{}
	readable := TenantChannel{stored.Settings, map[string]Secret{}}
	for name, secret := range stored.Secrets {
		if readable.Secrets[name] = secret; secret == "" {
			readable.Secrets[name] = sealed[strings.HasSuffix(name, "url") || strings.HasSuffix(name, "callback")]
		}
	}
	return t.OpenTenantChannel(name, readable, time.Hour)
}

// sealed has texts in place of secrets that no key opens: of URLs, and of others.
var sealed = map[bool]Secret{true: "https://sealed.invalid/", false: "sealed-sealed-sealed"}

// HostOf returns the host of a URL in a secret member, for answers; "": it is no URL, or is not known.
func HostOf(member string, s Secret) string {
	if u, err := url.Parse(string(s)); err == nil && s != sealed[true] && slices.Contains([]string{"url", "status_callback"}, member) {
		return u.Host
	}
	return ""
}

// hostIn returns the host of a URL or a host.
func hostIn(member any) string {
	text, _ := member.(string)
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		text = u.Hostname()
	}
	return strings.Trim(strings.ToLower(text), "[]")
}

// withoutSecrets returns the members of an object that are neither secret nor null.
func withoutSecrets(object []byte, secrets map[string]Secret) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	for name, value := range members {
		if _, secret := secrets[name]; secret || string(value) == "null" {
			delete(members, name)
		}
	}
	return json.Marshal(members)
}

// ChannelType describes the members of a type of channel that tenants may make.
type ChannelType struct {
	Type    string
	Members []strictyaml.Setting
}

// ChannelTypes describes all types that a tenant can have in any installation, for schemas and forms.
func ChannelTypes() []ChannelType {
	c := Channel{Own: &TenantChannels{}}
	var types []ChannelType
	for _, v := range c.cases() {
		c.Own.Types = append(c.Own.Types, v.Value)
		types = append(types, ChannelType{Type: v.Value})
	}
	strictyaml.Describe(c.ownSettings, func(s strictyaml.Setting) {
		for i := range types {
			if s.Case == "" || s.Case == types[i].Type {
				s.Meaning = strings.TrimSuffix(strings.TrimPrefix(s.Meaning, s.Case+": "), strictyaml.VariablesAllowed)
				types[i].Members = append(types[i].Members, s)
			}
		}
	})
	return types
}
