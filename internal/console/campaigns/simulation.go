package campaigns

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// previewForm are messages as they would be sent.
type previewForm struct {
	Asked   []client.Preview // of one recipient
	First   []client.Preview
	Longest []client.Preview
}

// previewDraft shows the messages of the first rows and of the rows with the longest values.
func previewDraft(p *frame.Page, v *draftView) error {
	var form previewForm
	first, err := p.API.Campaigns.Preview(p.Context(), v.ID, client.PreviewForm{})
	if err != nil {
		return err
	}
	longest, err := p.API.Campaigns.Preview(p.Context(), v.ID, client.PreviewForm{Longest: true})
	if err != nil {
		return err
	}
	form.First, form.Longest, v.Form = first.Messages, longest.Messages, &form
	if one := p.Query("recipient"); one != "" {
		asked, err := p.API.Campaigns.Preview(p.Context(), v.ID, client.PreviewForm{Recipient: one})
		if err != nil {
			return againDraft(p, err, "preview", v)
		}
		form.Asked = asked.Messages
	}
	return showDraft(p, "preview", v)
}

// messagePart is a text of a message that was rendered.
type messagePart struct {
	Name, Text string
	Characters int
}

// parts returns the texts of a message in reading order.
func parts(message map[string]any) []messagePart {
	var all []messagePart
	rank := []string{"title", "body", "html"}
	for _, name := range slices.SortedFunc(maps.Keys(message), func(a, b string) int {
		return cmp.Or(cmp.Compare(rankOf(rank, a), rankOf(rank, b)), strings.Compare(a, b))
	}) {
		text, ok := message[name].(string)
		if !ok {
			text = compactJSON(message[name])
		}
		all = append(all, messagePart{name, text, len([]rune(text))})
	}
	return all
}

func rankOf(order []string, name string) int {
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

// simulationForm is the result of a simulated start.
type simulationForm struct {
	client.Simulation
	Rules     []ruleCount
	Histogram template.HTML
}

type ruleCount struct {
	Rule       string
	Recipients int64
}

// simulateDraft simulates a start.
func simulateDraft(p *frame.Page, v *draftView) error {
	v.Simulated = frame.RFC3339(v.UpdatedAt) // what is changed from now on was perhaps not simulated
	s, err := p.API.Campaigns.Simulate(p.Context(), v.ID)
	if err != nil {
		return againDraft(p, err, "simulation", v)
	}
	form := simulationForm{Simulation: s}
	for rule, n := range s.ByRule {
		form.Rules = append(form.Rules, ruleCount{rule, n})
	}
	slices.SortFunc(form.Rules, func(a, b ruleCount) int {
		return cmp.Or(cmp.Compare(b.Recipients, a.Recipients), strings.Compare(a.Rule, b.Rule))
	})
	form.Histogram = histogram("Delays", delayBars(s.Delays))
	v.Form = &form
	return showDraft(p, "simulation", v)
}

// segmentCount counts the recipients whose texts have a number of segments.
type segmentCount struct{ Segments, Recipients int64 }

// SegmentCounts lists the recipients by the segments of their texts, the fewest first.
func (s *simulationForm) SegmentCounts() (all []segmentCount) {
	for segments, recipients := range s.Segments.ByCount {
		n, _ := strconv.ParseInt(segments, 10, 64) // the API writes numbers
		all = append(all, segmentCount{n, recipients})
	}
	slices.SortFunc(all, func(a, b segmentCount) int { return cmp.Compare(a.Segments, b.Segments) })
	return all
}

// delayBars are the spans of a simulation in words, with their recipients.
func delayBars(delays []client.Delay) []histogramBar {
	var all []histogramBar
	for _, d := range delays {
		name := "longer"
		if d.UpToSeconds > 0 {
			name = "up to " + frame.Span(time.Duration(d.UpToSeconds)*time.Second)
		}
		all = append(all, histogramBar{name, d.Recipients})
	}
	return all
}

// Bars are the numbers of the histogram, as a table.
func (s *simulationForm) Bars() []histogramBar { return delayBars(s.Delays) }

// showStart asks for the number of recipients before a start.
func showStart(p *frame.Page, v *draftView) error {
	v.Simulated = p.Query("simulated")
	if at, err := time.Parse(time.RFC3339Nano, v.Simulated); err == nil && !at.Equal(v.UpdatedAt) {
		return againDraft(p, changedSince(), "start", v)
	}
	return showDraft(p, "start", v)
}

// changedSince says that a draft is not what was simulated.
func changedSince() error {
	return frame.Stale("The draft was changed after the simulation or since this page was opened. Nothing was started. Check the draft and simulate it again.")
}

// startCampaign starts a draft as it was shown, once the number of its recipients was typed.
func startCampaign(p *frame.Page, v *draftView) error {
	shown := p.ShownAt()
	if !shown.IsZero() && !shown.Equal(v.UpdatedAt) {
		return againDraft(p, changedSince(), "start", v)
	}
	if typed := strings.NewReplacer(" ", "", "\u202f", "", "\u00a0", "", ",", "", ".", "").Replace(p.Field("recipients")); typed != fmt.Sprint(v.Audience) || v.Audience == 0 {
		var wrong frame.Faults
		wrong.Add("recipients", fmt.Errorf("the campaign has %s. Type this number to start it. Nothing was started", frame.CountWords(v.Audience, "recipient", "recipients")))
		return againDraft(p, wrong.Problem(), "start", v)
	}
	one, err := p.API.Campaigns.StartAsOf(p.Context(), v.ID, v.UpdatedAt)
	if frame.IsStale(err) {
		err = changedSince()
	}
	if err != nil {
		return againDraft(p, err, "start", v)
	}
	done := "Campaign started."
	if one.LocalTime != "" || one.SendAt.After(p.Now()) {
		done = "Campaign scheduled. No message is sent before its time."
	}
	return p.Done(done, p.Link("/campaigns/"+one.ID))
}
