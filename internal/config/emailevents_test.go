package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/receipt"
)

const (
	verificationKey = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
	topicARN        = "arn:aws:sns:eu-west-1:123456789012:mail"
)

func TestChannel_EmailEvents(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]EmailEvents{
		``:                                       {},
		`events: ses, events_topic: ` + topicARN: {Provider: EventsSES, Topic: topicARN},
		`events: sendgrid, events_key: "` + verificationKey + `"`:                              {Provider: EventsSendGrid, Key: verificationKey},
		`events: mailgun, events_key: "${TOKEN}"`:                                              {Provider: EventsMailgun, Key: hush},
		`events: postmark, events_username: hook, events_password: "${TOKEN}"`:                 {Provider: EventsPostmark, Username: "hook", Password: hush},
		`bounce_token: "0123456789abcdef"`:                                                     {BounceToken: "0123456789abcdef"},
		`events: mailgun, events_key: "${TOKEN}", bounce_token: "0123456789abcdef.~+/=-_long"`: {Provider: EventsMailgun, Key: hush, BounceToken: "0123456789abcdef.~+/=-_long"},
	} {
		c, errs := read("channels:\n  x: {type: email, host: h, from: a@b, "+members+"}", "TOKEN="+hush)
		if errs != nil {
			t.Errorf("%s: %v", members, errs)
			continue
		}
		if diff := cmp.Diff(want, c.Channels[0].Email.Events); diff != "" {
			t.Errorf("%s (-want +got):\n%s", members, diff)
		}
		if err := readable(want); err != nil {
			t.Errorf("%s: no reader takes it: %v", members, err)
		}
	}
}

// readable makes the reader of settings.
func readable(e EmailEvents) (err error) {
	switch e.Provider {
	case EventsSES:
		_, err = receipt.NewSES(e.Topic, nil)
	case EventsSendGrid:
		_, err = receipt.NewSendGrid(string(e.Key))
	case EventsMailgun:
		_, err = receipt.NewMailgun(string(e.Key))
	case EventsPostmark:
		_, err = receipt.NewPostmark(string(e.Username), string(e.Password))
	}
	return err
}

// TestChannel_EmailEventsErrors lists the errors of the settings of events, all of them. What is secret is not shown.
func TestChannel_EmailEventsErrors(t *testing.T) {
	t.Parallel()
	const token = "bounce_token: must be 16 to 256 of a-z, A-Z, 0-9 and ._~+/=-"
	for members, want := range map[string][]string{
		`events: sendgird, events_key: hush`: {`events: "sendgird": must be one of ses, sendgrid, mailgun, postmark (did you mean sendgrid?)`},
		`events: ses`:                        {"events_topic: is required with events: ses"},
		`events: sendgrid`:                   {"events_key: is required with events: sendgrid"},
		`events: mailgun`:                    {"events_key: is required with events: mailgun"},
		`events: postmark`:                   {"events_username: is required with events: postmark", "events_password: is required with events: postmark"},
		`events_topic: "` + topicARN + `", events_key: hush, events_username: u, events_password: hush, bounce_token: hush`: {
			token, "events_topic: is for events: ses only", "events_key: is for events: sendgrid or mailgun only",
			"events_username: is for events: postmark only", "events_password: is for events: postmark only",
		},
		`events: ses, events_topic: mail, events_key: hush`: {
			`events_topic: "mail": must be the ARN of a topic, such as arn:aws:sns:eu-west-1:123456789012:mail`, "events_key: is for events: sendgrid or mailgun only",
		},
		`events: sendgrid, events_key: hush`:                                    {"events_key: must be the verification key that SendGrid shows, which is a public key in base64"},
		`events: mailgun, events_key: " ", bounce_token: "hush hush hush hush"`: {"events_key: must not be empty", token},
		`events: postmark, events_username: "a:hush", events_password: ""`:      {"events_username: must not be empty or contain a colon", "events_password: must not be empty"},
	} {
		_, errs := read("channels:\n  x: {type: email, host: h, from: a@b, " + members + "}")
		var got []string
		for _, e := range errs {
			got = append(got, strings.TrimPrefix(e.Error(), "sendquota.yaml:2: channels.x."))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", members, diff)
		}
		if strings.Contains(errs.Error(), "hush") {
			t.Errorf("a secret in the errors: %v", errs)
		}
	}
	if _, errs := read("channels:\n  x: {type: log, events: ses, bounce_token: hush}"); len(errs) != 2 {
		t.Errorf("%v", errs)
	}
}

// TestTenantChannel_EmailEvents: secrets of events stay, until the provider changes.
func TestTenantChannel_EmailEvents(t *testing.T) {
	t.Parallel()
	const mail = `"type": "email", "host": "a.example", "from": "a@example.com"`
	_, stored, lines := readTenant(t, bounds(), `{`+mail+`, "events": "mailgun", "events_key": "hush", "bounce_token": "hush-hush-hush-hush"}`, nil)
	if len(lines) > 0 || stored.Secrets["events_key"] != "hush" || strings.Contains(string(stored.Settings), "hush") {
		t.Fatalf("%q, %s", lines, stored.Settings)
	}
	for object, want := range map[string]struct {
		events EmailEvents
		errors []string
	}{
		`{` + mail + `, "events": "mailgun"}`:                                 {EmailEvents{Provider: EventsMailgun, Key: "hush", BounceToken: "hush-hush-hush-hush"}, nil},
		`{` + mail + `, "events": "ses", "events_topic": "` + topicARN + `"}`: {EmailEvents{Provider: EventsSES, Topic: topicARN, BounceToken: "hush-hush-hush-hush"}, nil},
		`{` + mail + `}`:                                                     {EmailEvents{BounceToken: "hush-hush-hush-hush"}, nil},
		`{` + mail + `, "bounce_token": null}`:                               {EmailEvents{}, nil},
		`{` + mail + `, "events": "sendgrid"}`:                               {EmailEvents{}, []string{"events_key: is required with events: sendgrid"}},
		`{` + mail + `, "events": "postmark", "events_username": "${HOME}"}`: {EmailEvents{}, []string{"events_username: must not refer to a variable", "events_password: is required with events: postmark"}},
	} {
		c, _, lines := readTenant(t, bounds(), object, &stored)
		if len(lines) != len(want.errors) {
			t.Errorf("%s: %q", object, lines)
			continue
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, want.errors[i]) || strings.Contains(line, "hush") {
				t.Errorf("%s: %q", object, lines)
			}
		}
		if diff := cmp.Diff(want.events, c.Email.Events); len(want.errors) == 0 && diff != "" {
			t.Errorf("%s: %s", object, diff)
		}
	}
}
