package system

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
)

// policyView is the policy in force, a draft of another one, and what is known of both.
type policyView struct {
	client.NewPolicy       // that the editor shows, with rows to fill in
	Loaded           int64 // the version that was loaded into the editor; 0: the one in force
	InForce          client.Policy
	CategoryRows     []categoryRow
	Limits           map[string]string    // that are no numbers, as they were typed, by their fields
	Forecast         *client.PolicyChange // of the draft; nil: it was not asked for
	ForecastOf       string               // which draft that was
	Operation        *client.Operation    // that carries the last change on
	Shadow           []client.ShadowRule  // of the last week
	Versions         client.PolicyVersionsPage
	names            map[string]string // of the keys and users that have stored versions, by their ids
}

// Who returns the name of the author of a version, or the id if the name is unknown.
func (v *policyView) Who(by string) string {
	if by == "sendquota" {
		return "the operator"
	}
	return cmp.Or(v.names[by], by)
}

// categoryRow is a category in the editor.
type categoryRow struct {
	Name    string
	Bypass  bool
	Free    bool   // takes no place from others
	Counts  bool   // the document sets counts explicitly, although it is the default
	Level   string // "": normal
	Reserve string
}

// shadowTime is the period of the shown results of shadow rules.
const shadowTime = 7 * 24 * time.Hour

// showPolicy shows the policy in force in an editor, or an older version if the URL names one.
func showPolicy(p *frame.Page) error {
	view, err := readPolicy(p)
	if err != nil {
		return err
	}
	draft := asNew(view.InForce)
	if text := p.Query("version"); text != "" {
		old, found, err := findVersion(p, &view.Versions, text)
		if err != nil {
			return err
		}
		if !found {
			return &client.Problem{Title: "Version not found", Status: 404, Detail: "The policy has no version " + text + " that can be loaded"}
		}
		draft, view.Loaded = old.document(), old.Version
	}
	return p.Show("policy", "Policy", view.edit(draft, categoryRows(draft.Categories)))
}

// readPolicy reads what stands around the editor.
func readPolicy(p *frame.Page) (*policyView, error) {
	view := &policyView{}
	var err error
	if view.InForce, err = p.API.Policy.Get(p.Context()); err != nil {
		return nil, err
	}
	if id := p.Query("operation"); id != "" {
		o, err := p.API.Policy.GetOperation(p.Context(), id)
		if err != nil {
			return nil, err
		}
		view.Operation = &o
	}
	shadow, err := p.API.Policy.Shadow(p.Context(), client.PolicyShadowOptions{From: p.Now().Add(-shadowTime).Truncate(time.Hour)})
	if err != nil {
		return nil, err
	}
	view.Shadow = shadow.Rules
	if err := readVersions(p, &view.Versions, p.Query("page_token")); err != nil {
		return nil, err
	}
	if len(view.Versions.Versions) > 0 {
		view.names, err = authorNames(p)
	}
	return view, err
}

// readVersions reads a page of versions; without a token the first.
func readVersions(p *frame.Page, to *client.PolicyVersionsPage, token string) error {
	query := url.Values{"page_size": {"50"}}
	if token != "" {
		query.Set("page_token", token)
	}
	*to = client.PolicyVersionsPage{}
	return p.API.Get(p.Context(), "/v1/policy/versions", query, to)
}

// findVersion returns a version that can be loaded. It reads pages until it finds the version, because the audit log links to old ones.
func findVersion(p *frame.Page, page *client.PolicyVersionsPage, number string) (v pastVersion, found bool, err error) {
	wanted, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return v, false, nil
	}
	for {
		if v, found = versionOf(page.Versions, number); found || page.NextPageToken == "" || len(page.Versions) == 0 || page.Versions[len(page.Versions)-1].Version <= wanted {
			return v, found, nil
		}
		if err := readVersions(p, page, page.NextPageToken); err != nil {
			return v, false, err
		}
	}
}

// edit puts a document into the editor, with empty rows behind it.
func (v *policyView) edit(draft client.NewPolicy, categories []categoryRow) *policyView {
	v.NewPolicy = draft
	v.Rules = append(v.Rules, client.NewRule{}, client.NewRule{})
	v.QuietHours = append(v.QuietHours, client.NewQuietHours{})
	v.CategoryRows = append(categories, categoryRow{})
	return v
}

// Limit is the limit of a row: as it was typed; empty, if the row has no name yet.
func (v *policyView) Limit(i int, r client.NewRule) string {
	typed, is := v.Limits[row("rules", i)+"limit"]
	switch {
	case is:
		return typed
	case r.Name == "" && r.Limit == 0:
		return ""
	}
	return strconv.FormatInt(r.Limit, 10)
}

// savePolicy asks what a draft would change, and once that was seen, puts it in force.
func savePolicy(p *frame.Page) error {
	view, err := readPolicy(p)
	if err != nil {
		return err
	}
	draft, rows, wrong := view.read(p.Request.PostForm)
	sum := digest(draft)
	if len(wrong) > 0 || p.Field("do") != "save" || p.Field("forecast_of") != sum {
		forecast, err := p.API.Policy.ForecastPut(p.Context(), draft)
		if err := wrong.Both(atRows(err, rows)); err != nil {
			return p.ShowAgain(err, "policy", "Policy", view.edit(draft, rows))
		}
		view.Forecast, view.ForecastOf = &forecast, sum
		return p.Show("policy", "Policy", view.edit(draft, rows))
	}
	version, err := strconv.ParseInt(p.Field("if_version"), 10, 64)
	if err != nil {
		return &client.Problem{Title: "Bad Request", Status: 400, Detail: "The form does not name the version that it changes. Open the page again"}
	}
	made, err := p.API.Policy.Put(p.Context(), draft, client.PolicyOptions{IfVersion: &version, Apply: p.Field("apply")})
	if err != nil {
		return p.ShowAgain(frame.ExplainStale(atRows(err, rows)), "policy", "Policy", view.edit(draft, rows))
	}
	return p.Done("Version "+strconv.FormatInt(made.Version, 10)+" of the policy is active.", p.Link("/policy", "operation", made.Operation))
}

// anyLimit stands for a limit that is no number when the API is asked what else is wrong: places can be kept of it.
const anyLimit = 100_000

// read reads the editor. Rows that are all empty are left out, and their fields are named as the API names their places.
func (v *policyView) read(form url.Values) (d client.NewPolicy, rows []categoryRow, wrong frame.Faults) {
	v.Limits = map[string]string{}
	d = client.NewPolicy{DefaultZone: form.Get("default_zone")}
	for i := range rowsOf(form, "rules") {
		at := func(field string) string { return form.Get(row("rules", i) + field) }
		if at("name")+at("limit")+at("window")+at("per")+at("week_start")+at("zone")+at("channels")+at("categories")+at("shadow") == "" {
			continue
		}
		limit, err := strconv.ParseInt(at("limit"), 10, 64)
		if err != nil {
			field := row("rules", len(d.Rules)) + "limit"
			wrong.Add(field, errors.New("must be a whole number"))
			limit, v.Limits[field] = anyLimit, at("limit")
		}
		d.Rules = append(d.Rules, client.NewRule{
			Name: at("name"), Limit: limit, Window: at("window"), Per: client.NewRulePer(at("per")), Zone: at("zone"), WeekStart: at("week_start"),
			Channels: words(at("channels")), Categories: namesOf(at("categories")), Shadow: at("shadow") != "",
		})
	}
	for i := range rowsOf(form, "quiet_hours") {
		at := func(field string) string { return form.Get(row("quiet_hours", i) + field) }
		if at("name")+at("from")+at("until")+at("days")+at("zone")+at("action")+at("channels")+at("categories") == "" {
			continue
		}
		d.QuietHours = append(d.QuietHours, client.NewQuietHours{
			Name: at("name"), From: at("from"), Until: at("until"), Zone: at("zone"), Action: client.NewQuietHoursAction(at("action")),
			Days: words(at("days")), Channels: words(at("channels")), Categories: namesOf(at("categories")),
		})
	}
	d.Categories, rows = readCategories(form, &wrong)
	return d, rows, wrong
}

// digest tells drafts apart.
func digest(draft client.NewPolicy) string {
	text, err := json.Marshal(draft)
	if err != nil {
		panic(err) // it has nothing that JSON cannot say
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// deletePolicy goes back to the policy of the operator.
func deletePolicy(p *frame.Page) error {
	var seen client.PolicyOptions
	if version, err := strconv.ParseInt(p.Field("if_version"), 10, 64); err == nil {
		seen.IfVersion = &version
	}
	made, err := p.API.Policy.Delete(p.Context(), seen)
	if err != nil {
		return err
	}
	return p.Done("The default policy is active again.", p.Link("/policy", "operation", made.Operation))
}

// authorNames returns the names of keys and users by id, as far as this user can see them.
func authorNames(p *frame.Page) (map[string]string, error) {
	names := map[string]string{}
	if p.May(push.ScopeKeysRead) {
		var keys client.KeysPage
		if err := p.API.Get(p.Context(), "/v1/keys", url.Values{"page_size": {"500"}}, &keys); err != nil {
			return nil, err
		}
		for _, k := range keys.Keys {
			names[k.ID] = k.Name
		}
	}
	if p.May(push.ScopeUsersRead) {
		var users client.UsersPage
		if err := p.API.Get(p.Context(), "/v1/users", url.Values{"page_size": {"500"}}, &users); err != nil {
			return nil, err
		}
		for _, u := range users.Users {
			names[u.ID] = cmp.Or(u.Name, u.Email)
		}
	}
	return names, nil
}
