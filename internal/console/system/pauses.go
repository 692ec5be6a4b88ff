package system

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/push"
)

// pausesView is what is stopped, and the form that stops more.
type pausesView struct {
	Pauses     []client.Pause
	Channels   []string
	Categories []string
	Campaigns  []client.Campaign // that have something left to send

	by    map[string]string // who made a pause, by its id
	names map[string]string // of campaigns, by their ids
}

const pausesTitle = "Stop sending"

// choices is the maximum number of campaigns of the form, and of entries of the audit log that are searched for authors.
const choices = "200"

func showPauses(p *frame.Page) error {
	view, err := readPauses(p)
	if err != nil {
		return err
	}
	return p.Show("pauses", pausesTitle, view)
}

func readPauses(p *frame.Page) (*pausesView, error) {
	view := &pausesView{names: map[string]string{}}
	var err error
	if view.Pauses, err = p.ReadPauses(); err != nil {
		return nil, err
	}
	if err := view.readAuthors(p); err != nil {
		return nil, err
	}
	if err := view.readCampaigns(p); err != nil || !p.MayPause() {
		return view, err
	}
	return view, view.readChoices(p)
}

// readAuthors finds in the audit log who made the pauses.
func (v *pausesView) readAuthors(p *frame.Page) error {
	if len(v.Pauses) == 0 || !p.May(push.ScopeRecordsRead) {
		return nil
	}
	first := slices.MinFunc(v.Pauses, func(a, b client.Pause) int { return a.CreatedAt.Compare(b.CreatedAt) }).CreatedAt
	var found client.AuditLogPage
	err := p.API.Get(p.Context(), "/v1/audit-log", url.Values{
		"action": {string(auditlog.PauseCreate)}, "from": {frame.RFC3339(first.Add(-time.Minute))}, "page_size": {choices},
	}, &found)
	v.by = map[string]string{}
	for _, e := range found.Entries {
		v.by[e.Target.ID] = string(e.Actor.Type) + " " + cmp.Or(e.Actor.Name, e.Actor.ID)
	}
	return err
}

// readCampaigns reads the latest campaigns, and those of pauses.
func (v *pausesView) readCampaigns(p *frame.Page) error {
	if !p.May(push.ScopeCampaignsRead) {
		return nil
	}
	var found client.CampaignsPage
	if err := p.API.Get(p.Context(), "/v1/campaigns", url.Values{"page_size": {choices}}, &found); err != nil {
		return err
	}
	for _, one := range found.Campaigns {
		v.names[one.ID] = p.CampaignChoice(one)
		if one.Status != client.CampaignStatusFinished && one.Status != client.CampaignStatusCanceled {
			v.Campaigns = append(v.Campaigns, one)
		}
	}
	for _, one := range v.Pauses {
		if one.Scope != client.PauseScopeCampaign || v.names[one.Name] != "" {
			continue
		}
		old, err := p.API.Campaigns.Get(p.Context(), one.Name)
		if problem := (*client.Problem)(nil); errors.As(err, &problem) && problem.Status == http.StatusNotFound {
			continue // it was deleted
		}
		if err != nil {
			return err
		}
		v.names[one.Name] = p.CampaignChoice(old)
	}
	return nil
}

// readChoices reads the names of channels and categories.
func (v *pausesView) readChoices(p *frame.Page) error {
	if p.May(push.ScopeRead) {
		report, err := p.API.Channels.List(p.Context())
		if err != nil {
			return err
		}
		for _, c := range report.Channels {
			v.Channels = append(v.Channels, c.Name)
		}
	}
	if !p.May(push.ScopePolicyRead) {
		return nil
	}
	policy, err := p.API.Policy.Get(p.Context())
	v.Categories = slices.Sorted(maps.Keys(policy.Categories))
	return err
}

// Stops names what a pause stops.
func (v *pausesView) Stops(p client.Pause) string {
	switch p.Scope {
	case client.PauseScopeAll:
		return "everything"
	case client.PauseScopeCampaign:
		return "the campaign " + cmp.Or(v.names[p.Name], p.Name)
	}
	return "the " + string(p.Scope) + " " + p.Name
}

// By names the user or the key that made a pause; empty: it is not known.
func (v *pausesView) By(p client.Pause) string {
	if p.Operator {
		return "the operator"
	}
	return v.by[p.ID]
}

// namedScopes are the scopes of pauses with a name. The form has a field of the same name for each.
var namedScopes = []string{string(client.PauseScopeChannel), string(client.PauseScopeCategory), string(client.PauseScopeCampaign)}

// stopSending pauses what the form chooses. The same form again changes nothing.
func stopSending(p *frame.Page) error {
	var bad frame.Faults
	scope, reason, until, ends := p.Field("scope"), p.Field("reason"), time.Time{}, p.Field("until") != ""
	if scope == "" {
		bad.Add("scope", errors.New("choose what to stop"))
	}
	if ends {
		var err error
		if until, err = p.ReadLocal(p.Field("until")); err == nil && !until.After(p.Now()) {
			err = errors.New("choose a time in the future")
		}
		bad.Add("until", err)
	}
	ask := client.NewPause{Scope: client.NewPauseScope(scope), Until: json.RawMessage("null")} // without an end, also if the same is stopped already
	if reason != "" {
		ask.Reason = reason
	}
	if !until.IsZero() {
		ask.Until = until
	}
	if slices.Contains(namedScopes, scope) {
		if ask.Name = p.Field(scope); ask.Name == "" {
			bad.Add(scope, errors.New("choose the "+scope+" to stop"))
		}
	}
	if err := bad.Problem(); err != nil {
		return stopAgain(p, err)
	}
	made, err := p.API.Pauses.Create(p.Context(), ask)
	if err != nil {
		return stopAgain(p, frame.AtField(err, "name", cmp.Or(scope, "scope")))
	}
	return p.Done("Sending of "+stoppedWords(made)+" stops within two seconds. Messages that are being sent now are finished."+warningWords(made), p.Link(frame.PausesPath))
}

// warningWords is what the answer warns of, as one more sentence.
func warningWords(p client.Pause) string {
	if p.Warning == "" {
		return ""
	}
	return " But " + p.Warning + "."
}

func stopAgain(p *frame.Page, why error) error {
	view, err := readPauses(p)
	if err != nil {
		return err
	}
	return p.ShowAgain(why, "pauses", pausesTitle, view)
}

func stoppedWords(p client.Pause) string {
	switch p.Scope {
	case client.PauseScopeAll:
		return "all messages"
	case client.PauseScopeCampaign:
		return "the campaign"
	}
	return "the " + string(p.Scope) + " " + p.Name
}

// resumeSending ends a pause. One that has ended is no error: the form was sent twice, or another user was faster.
func resumeSending(p *frame.Page) error {
	err := p.API.Pauses.Delete(p.Context(), p.Param("id"))
	var problem *client.Problem
	switch {
	case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
		return p.Done("That stop has ended already.", p.Link(frame.PausesPath))
	case errors.As(err, &problem) && problem.Status == http.StatusForbidden && p.MayPause():
		return &client.Problem{Title: "Only the operator can resume this", Status: http.StatusForbidden, Detail: "The operator of sendquota has stopped sending for all teams."}
	case err != nil:
		return err
	}
	return p.Done("Sending resumes. Messages that waited are sent now, as the limits allow.", p.Link(frame.PausesPath))
}
