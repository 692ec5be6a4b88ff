package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/recurrence"
)

// count is a row of a summary. Rows with 0 recipients are left out.
type count struct {
	title string
	of    int64
	note  string
}

func printCounts(w io.Writer, all []count) error {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	for _, c := range all {
		if c.of > 0 {
			fmt.Fprintln(t, strings.TrimRight(fmt.Sprintf("%s\t%8d\t%s", c.title, c.of, c.note), " \t"))
		}
	}
	return t.Flush()
}

// stateWords returns the status of a campaign, and its phase if that has another name: "running, scheduled".
func stateWords(p client.Campaign) string {
	if string(p.Phase) == string(p.Status) {
		return string(p.Status)
	}
	return string(p.Status) + ", " + strings.ReplaceAll(string(p.Phase), "_", " ")
}

// printCampaign prints the progress of a campaign.
func printCampaign(w io.Writer, p client.Campaign, asJSON bool) error {
	if asJSON {
		return printJSON(w, p)
	}
	fmt.Fprintf(w, "campaign    %s %q\nstatus      %s\nsend at     %s\n", p.ID, p.Name, stateWords(p), sendTime(p))
	g := p.Progress
	moved := ""
	if g.Deferred > 0 {
		moved = fmt.Sprintf("%d of them have a later time than requested", g.Deferred)
	}
	return printCounts(w, []count{
		{"recipients", g.Audience, moved},
		{"pending", g.Pending, "not booked yet"},
		{"scheduled", g.Scheduled, "will be sent"},
		{"sent", g.Sent, ""},
		{"refused", g.Refused, "the quota has no place"},
		{"opted out", g.OptedOut, "they do not want it"},
		{"invalid", g.Invalid, "their lines make no message"},
		{"failed", g.Failed, "the provider did not accept it"},
		{"expired", g.Expired, "it could not be sent in time"},
		{"canceled", g.Canceled, ""},
	})
}

// printSimulation prints the result of a simulated start.
func printSimulation(w io.Writer, s client.Simulation, asJSON bool) error {
	if asJSON {
		return printJSON(w, s)
	}
	err := printCounts(w, []count{
		{"recipients", s.Recipients, ""},
		{"accepted", s.Accepted, "at their time"},
		{"deferred", s.Deferred, "later, because their quota is full then" + delays(s.Delays)},
		{"refused", s.Refused, "the quota has no place"},
		{"opted out", s.OptedOut, "they do not want it"},
		{"invalid", s.Invalid, "their lines make no message"},
	})
	if s.Segments.Total > 0 {
		fmt.Fprintf(w, "segments: %d%s\n", s.Segments.Total, bySegments(s.Segments.ByCount))
	}
	if len(s.ByRule) > 0 {
		fmt.Fprintln(w, "in the way, by rule:")
		for _, rule := range slices.Sorted(maps.Keys(s.ByRule)) {
			fmt.Fprintf(w, "  %s: %d\n", rule, s.ByRule[rule])
		}
	}
	if len(s.CollidesWith) > 0 {
		fmt.Fprintln(w, "collides with:")
		for _, c := range s.CollidesWith {
			fmt.Fprintf(w, "  %q: %d (campaign %s)\n", c.Name, c.Recipients, c.Campaign)
		}
	}
	if len(s.BetterStarts) > 0 {
		fmt.Fprintln(w, "better starts:")
		for _, b := range s.BetterStarts {
			fmt.Fprintf(w, "  %s: %d accepted\n", b.SendAt.UTC().Format(time.RFC3339), b.Accepted)
		}
	}
	return err
}

// bySegments lists the numbers of recipients by the segments of their texts, after a colon.
func bySegments(counts map[string]int64) string {
	var all []string
	for _, segments := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) }) {
		all = append(all, fmt.Sprintf("%d texts of %s", counts[segments], segments))
	}
	return ": " + strings.Join(all, ", ")
}

// delays lists the numbers of deferred recipients by how long they are deferred, after a colon.
func delays(all []client.Delay) string {
	parts := []string{}
	for _, d := range all {
		switch {
		case d.Recipients == 0:
		case d.UpToSeconds == 0:
			parts = append(parts, fmt.Sprintf("%d by more than a day", d.Recipients))
		default:
			parts = append(parts, fmt.Sprintf("%d by up to %s", d.Recipients, recurrence.Span(time.Duration(d.UpToSeconds)*time.Second)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// printAudience counts the lines of a file by their results, and prints the first errors.
func printAudience(w io.Writer, a client.Audience) {
	fmt.Fprintf(w, "%d lines: %d recipients", a.Rows, a.Accepted)
	if a.Duplicates > 0 {
		fmt.Fprintf(w, ", %d duplicates", a.Duplicates)
	}
	if a.Rejected > 0 {
		fmt.Fprintf(w, ", %d rejected", a.Rejected)
	}
	fmt.Fprintln(w)
	for _, e := range a.Errors[:min(len(a.Errors), 10)] {
		fmt.Fprintf(w, "  line %d: %s\n", e.Line, e.Message)
	}
	if more := a.Rejected - int64(min(len(a.Errors), 10)); more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
}
