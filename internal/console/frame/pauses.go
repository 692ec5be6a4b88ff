package frame

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
)

// PausesPath is the path of the page that stops and resumes sending.
const PausesPath = "/pauses"

// pausesTime is the longest time that a page waits for the pauses of its banner.
const pausesTime = 2 * time.Second

// pagedPauses is the number of pauses in a page of their list. Two pages have all of a tenant and of the operator.
const pagedPauses = "200"

// shownPauses is the maximum number of pauses that the banner names.
const shownPauses = 3

// Stopped holds the pauses in force, as far as a page knows them.
type Stopped struct {
	read bool
	all  []client.Pause
}

// MayPause and SeesPauses report whether the role can stop sending, and whether it can see what is stopped.
func (v Visitor) MayPause() bool { return v.May(push.ScopePausesWrite) }

func (v Visitor) SeesPauses() bool { return v.May(push.ScopePausesRead) }

// ReadPauses reads the pauses in force, the latest first. The banner shows them as well.
func (p *Page) ReadPauses() ([]client.Pause, error) {
	all, err := readPauses(p.Context(), p.API)
	if err == nil {
		p.Stopped = Stopped{true, all}
	}
	return all, err
}

func readPauses(ctx context.Context, api *client.Client) ([]client.Pause, error) {
	var all []client.Pause
	for query := (url.Values{"page_size": {pagedPauses}}); ; {
		var page client.Pauses
		if err := api.Get(ctx, "/v1/pauses", query, &page); err != nil {
			return nil, err
		}
		if all = append(all, page.Pauses...); page.NextPageToken == "" {
			return all, nil
		}
		query.Set("page_token", page.NextPageToken)
	}
}

// lookForPauses reads the pauses of the banner once for a page. The drawer of calls does not list this call. Without an answer, or
// after an error of the program, the page has no banner.
func (p *Page) lookForPauses() {
	broken := p.Problem != nil && p.Problem.Status >= http.StatusInternalServerError
	if p.Stopped.read || broken || p.Visitor.Role == "" || !p.SeesPauses() {
		return
	}
	ctx, cancel := context.WithTimeout(p.Context(), pausesTime)
	defer cancel()
	quiet, _ := p.site.callAPI(p.Writer, p.Request, p.Visitor)
	all, err := readPauses(ctx, quiet)
	if err != nil && p.Context().Err() == nil {
		p.site.cfg.Log.WarnContext(p.Context(), "cannot read the pauses for the banner of a page", "error", err)
	}
	p.Stopped = Stopped{true, all}
}

// LookAgain reads the pauses again before a stream draws its part of the page.
func (p *Page) LookAgain() {
	p.Stopped = Stopped{}
	p.lookForPauses()
}

// All returns the pauses, the latest first.
func (s Stopped) All() []client.Pause { return s.all }

// Named returns the pauses that the banner names. More returns the number of the others.
func (s Stopped) Named() []client.Pause { return s.all[:min(len(s.all), shownPauses)] }

func (s Stopped) More() int { return max(0, len(s.all)-shownPauses) }

// Over returns the pauses that stop a message of a channel, a category and a campaign. An empty campaign means none.
func (s Stopped) Over(channel, category, campaign string) (over []client.Pause) {
	for _, one := range s.all {
		switch {
		case one.Scope == client.PauseScopeAll,
			one.Scope == client.PauseScopeChannel && one.Name == channel,
			one.Scope == client.PauseScopeCategory && one.Name == category,
			one.Scope == client.PauseScopeCampaign && campaign != "" && one.Name == campaign:
			over = append(over, one)
		}
	}
	return over
}

// PauseWords names what a pause stops. The name of a campaign is its id, which pages show as a link.
func PauseWords(p client.Pause) string {
	switch p.Scope {
	case client.PauseScopeAll:
		return "everything"
	case client.PauseScopeCampaign:
		return "one campaign"
	}
	return "the " + string(p.Scope) + " " + p.Name
}

// HeldWords describes the pause that held a message.
func HeldWords(scope client.HeldScope) string {
	switch scope {
	case client.HeldScopeAll:
		return "all sending was stopped"
	case client.HeldScopeChannel, client.HeldScopeCategory:
		return "sending of its " + string(scope) + " was stopped"
	}
	return "its campaign was paused"
}
