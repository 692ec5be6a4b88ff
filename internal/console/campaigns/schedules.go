package campaigns

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/zone"
)

// schedulesView is the list of schedules.
type schedulesView struct {
	client.SchedulesPage
}

// cronWords describes a cron expression.
func cronWords(expression string) string { return recurrence.Words(expression) }

func showSchedules(p *frame.Page) error {
	view := schedulesView{}
	if err := p.List("/v1/schedules", 50, &view.SchedulesPage, "page_token"); err != nil {
		return err
	}
	return p.Show("schedules", "Schedules", view)
}

// scheduleView is one schedule, or the form for another one.
type scheduleView struct {
	client.Schedule
	Next      []nextRun
	Runs      client.RunsPage
	Campaigns []client.Campaign // that can be patterns
	Pattern   *client.Campaign  // that is sent; nil: a push, or it cannot be read any more
	Written   string            // the size of the text of the form; empty: it was not asked for
}

// sentBy is the message that a schedule sends.
type sentBy struct {
	Category, OnConflict string
	Latest               time.Time
	Message              map[string]any
}

// Sent returns the next message; nil if it is unknown.
func (v *scheduleView) Sent() *sentBy {
	switch {
	case v.Campaign == "":
		return &sentBy{v.Push.Category, string(v.Push.OnConflict), v.Push.Latest, v.Push.Message}
	case v.Pattern != nil:
		return &sentBy{v.Pattern.Category, string(v.Pattern.OnConflict), v.Pattern.Latest, v.Pattern.Message}
	}
	return nil
}

// nextRun is a time of a schedule that is to come.
type nextRun struct {
	At    time.Time
	Local string // what the clocks of the schedule's zone show
	Note  string // about clocks that are set; empty: nothing special
}

// NextRuns is the number of upcoming runs that are shown.
const NextRuns = 5

func showSchedule(p *frame.Page) error {
	view, err := readSchedule(p, p.Param("id"))
	if err != nil {
		return err
	}
	return p.Show("schedule", view.title(), view)
}

func (v *scheduleView) title() string {
	if v.Name == "" {
		return "Schedule " + v.Cron
	}
	return "Schedule " + v.Name
}

func readSchedule(p *frame.Page, id string) (*scheduleView, error) {
	view := &scheduleView{}
	var err error
	if err = p.ReadExact("/v1/schedules/"+frame.PathPart(id), &view.Schedule); err != nil {
		return nil, err
	}
	if view.Campaign != "" {
		var (
			pattern client.Campaign
			none    *client.Problem
		)
		switch err := p.ReadExact("/v1/campaigns/"+frame.PathPart(view.Campaign), &pattern); {
		case err == nil:
			view.Pattern = &pattern
		case !errors.As(err, &none) || none.Status != http.StatusForbidden && none.Status != http.StatusNotFound: // the page works without it
			return nil, err
		}
	}
	next, err := p.API.Schedules.NextTimes(p.Context(), id, client.NextTimesOptions{N: NextRuns})
	if err != nil {
		return nil, err
	}
	view.Next = nextOf(view.Cron, next.Next, frame.LoadZone(view.TimeZone), p.Now())
	query := url.Values{"page_size": {"20"}}
	if token := p.Query("page_token"); token != "" {
		query.Set("page_token", token)
	}
	return view, p.API.Get(p.Context(), "/v1/schedules/"+frame.PathPart(id)+"/runs", query, &view.Runs)
}

// nextOf returns the local times of runs in a zone, with notes on clock changes.
func nextOf(cron string, times []time.Time, in *time.Location, now time.Time) []nextRun {
	if in == nil {
		in = time.UTC
	}
	before := now
	var all []nextRun
	for _, at := range times {
		all = append(all, nextRun{at, at.In(in).Format("Mon 2 Jan 2006, 15:04 -07:00"), clockNote(cron, before.In(in), at.In(in))})
		before = at
	}
	return all
}

// clockNote describes the clock change at a run or since the previous run; empty if there is none.
func clockNote(cron string, before, at time.Time) string {
	_, now := at.Zone()
	_, justBefore := at.Add(-time.Second).Zone()
	_, soon := at.Add(3 * time.Hour).Zone()
	_, earlier := before.Zone()
	byClocks := !strings.HasPrefix(cron, "@every")
	switch {
	case now > justBefore && byClocks && !happens(cron, zone.Shown(at, at.Location())):
		return "Clocks go forward at this time. A run in the skipped hour happens now."
	case now > justBefore:
		return "Clocks go forward at this time."
	case soon < now && byClocks && repeats(at, now-soon):
		text := "Clocks go back soon after and show this time twice. It runs "
		if happens(cron, at.Add(time.Duration(now-soon)*time.Second)) {
			return text + "both times."
		}
		return text + "once, at the first."
	case now > earlier:
		return "Clocks went forward since the previous run."
	case now < earlier:
		return "Clocks went back since the previous run."
	}
	return ""
}

// happens reports whether a moment is one of an expression.
func happens(cron string, at time.Time) bool {
	times, err := recurrence.Parse(cron, at.Location(), at)
	if err != nil {
		return false
	}
	next, ok := times.Next(at.Add(-time.Second))
	return ok && next.Equal(at)
}

// repeats reports whether a time occurs again when clocks go back by a number of seconds.
func repeats(at time.Time, seconds int) bool {
	const clock = "2006-01-02 15:04:05"
	return at.Add(time.Duration(seconds)*time.Second).Format(clock) == at.Format(clock)
}

// newSchedule is the form for another schedule.
func newSchedule(p *frame.Page) error {
	return p.Show("schedulenew", "New schedule", patterns(p))
}

// patterns are the campaigns that a schedule can repeat.
func patterns(p *frame.Page) *scheduleView {
	view := &scheduleView{}
	if !p.May(push.ScopeCampaignsRead) {
		return view
	}
	var recent client.CampaignsPage
	if err := p.API.Get(p.Context(), "/v1/campaigns", url.Values{"page_size": {"100"}}, &recent); err != nil {
		return view // the form works without the choice
	}
	for _, c := range recent.Campaigns {
		if c.Status == client.CampaignStatusDraft || c.Status == client.CampaignStatusFinished {
			view.Campaigns = append(view.Campaigns, c)
		}
	}
	return view
}

func createSchedule(p *frame.Page) error {
	var wrong frame.Faults
	made := client.NewSchedule{
		Name: p.Field("name"), Cron: p.Field("cron"), TimeZone: p.Field("time_zone"), Campaign: p.Field("campaign"), CatchUp: client.NewScheduleCatchUp(p.Field("catch_up")),
	}
	if until := p.Field("until"); until != "" {
		at, err := p.ReadLocal(until)
		wrong.Add("until", err)
		made.Until = at
	}
	if made.Campaign == "" {
		made.Push = client.PushPattern{
			Recipient: p.Field("push.recipient"), Channel: p.Field("push.channel"), Category: p.Field("push.category"), Message: client.Message{},
			OnConflict: client.PushPatternOnConflict(p.Field("push.on_conflict")),
		}
		wrong.Add("push.message", readMessage(p.Request.PostForm, made.Push.Message))
	}
	err := wrong.Problem()
	if err == nil && p.Field("do") == "check" {
		return checkText(p, made)
	}
	var one client.Schedule
	if err == nil {
		one, err = p.API.Schedules.Create(p.Context(), p.Field("once"), made)
	}
	if err != nil {
		return p.ShowAgain(err, "schedulenew", "New schedule", patterns(p))
	}
	return p.Done("Schedule created.", p.Link("/schedules/"+one.ID))
}

// readMessage reads a message of a form: a title and a text, and other members as JSON.
func readMessage(form url.Values, into client.Message) error {
	if more := strings.TrimSpace(form.Get("push.more")); more != "" {
		if err := frame.ReadObject(more, into); err != nil {
			return err
		}
	}
	for _, name := range []string{"title", "body"} {
		if text := form.Get("push." + name); text != "" {
			into[name] = text
		}
	}
	return nil
}

// changeSchedule changes, pauses or resumes a schedule.
func changeSchedule(p *frame.Page) error {
	id := p.Param("id")
	var (
		change client.ScheduleChange
		wrong  frame.Faults
		done   = "Schedule saved."
		shown  time.Time // zero: whatever was changed in between stays
	)
	switch p.Field("do") {
	case "pause":
		yes := true
		change.Paused, done = &yes, "Schedule paused. Nothing is sent until you resume it."
	case "resume":
		no := false
		change.Paused, done = &no, "Schedule resumed."
	default:
		name, cron, timeZone, catchUp := p.Field("name"), p.Field("cron"), p.Field("time_zone"), client.ScheduleChangeCatchUp(p.Field("catch_up"))
		shown = p.ShownAt()
		change = client.ScheduleChange{Name: &name, Cron: &cron, TimeZone: &timeZone, CatchUp: &catchUp, Until: client.Null}
		if until := p.Field("until"); until != "" {
			at, err := p.ReadLocal(until)
			wrong.Add("until", err)
			change.Until = at
		}
	}
	err := wrong.Problem()
	if err == nil {
		_, err = p.API.Schedules.ChangeAsOf(p.Context(), id, shown, change)
	}
	if err != nil {
		view, found := readSchedule(p, id)
		if found != nil {
			return found
		}
		return p.ShowAgain(frame.ExplainStale(err), "schedule", view.title(), view)
	}
	return p.Done(done, p.Link("/schedules/"+id))
}

func deleteSchedule(p *frame.Page) error {
	if err := p.API.Schedules.Delete(p.Context(), p.Param("id")); err != nil {
		return err
	}
	return p.Done("Schedule deleted. Messages already sent or scheduled stay.", p.Link("/schedules"))
}
