package people

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/axis"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// draw makes the axis of what was read.
func (v *recipientView) draw() {
	from, until := v.window()
	a := axis.Axis{
		From: from, Until: until, Zone: v.p.Zones.Shown(), Scale: v.Scale, Now: v.p.Now(), Cursor: v.Cursor,
		Title: "When " + v.ID + " gets messages, and when more are allowed",
	}
	a.Lanes = append(a.Lanes, v.pushLane(a))
	if len(v.Attempts) > 0 {
		a.Lanes = append(a.Lanes, v.attemptLane(a))
	}
	for _, r := range v.Availability.Rules {
		lane := axis.Lane{Name: r.Rule, Kind: "rule"}
		if r.Quiet {
			lane.Kind = "quiet"
		}
		for _, b := range r.Blocked {
			lane.Spans = append(lane.Spans, axis.Span{From: b.From, Until: b.Until})
		}
		a.Lanes = append(a.Lanes, lane)
	}
	free := axis.Lane{Name: "Free", Kind: "free"}
	for _, s := range v.Availability.Free {
		free.Spans = append(free.Spans, axis.Span{From: s.From, Until: s.Until})
	}
	a.Lanes = append(a.Lanes, free)
	if len(v.BecomesFree) > 0 {
		more := axis.Lane{Name: "Becomes free", Kind: "free"}
		for _, s := range v.BecomesFree {
			more.Spans = append(more.Spans, axis.Span{From: s.From, Until: s.Until})
		}
		a.Lanes = append(a.Lanes, more)
	}
	v.Axis, v.Data = a.SVG(), v.data(a)
}

// pushLane has a mark for each push; if the user may not see them, for each booking.
func (v *recipientView) pushLane(a axis.Axis) axis.Lane {
	lane := axis.Lane{Name: "Messages", Kind: "pushes"}
	if v.Pushes == nil {
		for _, b := range v.Availability.Bookings {
			lane.Marks = append(lane.Marks, axis.Mark{At: b.SendAt, Status: string(b.Status), Title: string(b.Status) + ", " + a.Stamp(b.SendAt)})
		}
	}
	for _, one := range v.Pushes {
		m := axis.Mark{At: one.SendAt, Status: string(one.Status), Title: string(one.Status) + ": " + describePush(one) + ", " + a.Stamp(one.SendAt)}
		if v.Movable(one) {
			m.ID = one.ID
		}
		lane.Marks = append(lane.Marks, m)
	}
	return lane
}

func (v *recipientView) attemptLane(a axis.Axis) axis.Lane {
	lane := axis.Lane{Name: "Attempts", Kind: "sends"}
	for _, s := range v.Attempts {
		lane.Marks = append(lane.Marks, axis.Mark{At: s.StartedAt, Status: string(s.Outcome), Title: string(s.Outcome) + ": attempt " + frame.Number(s.Attempt) + ", " + a.Stamp(s.StartedAt)})
	}
	return lane
}

// describePush says in a few words what a push is: its message's title, or its category and channel.
func describePush(one client.Push) string {
	words := []string{}
	if title, ok := one.Message["title"].(string); ok && title != "" {
		words = append(words, "“"+title+"”")
	}
	if one.Category != "" {
		words = append(words, one.Category)
	}
	return strings.Join(append(words, "on channel "+one.Channel), " ")
}

// axisData is the input of the axis script. Times are seconds since 1970.
type axisData struct {
	From   int64             `json:"from"`
	Until  int64             `json:"until"`
	At     int64             `json:"at"` // of the window
	Now    int64             `json:"now"`
	Step   int64             `json:"step"` // of an arrow key
	Cursor int64             `json:"cursor"`
	Zone   string            `json:"zone"`
	Free   [][2]int64        `json:"free"`
	Rules  []AxisRule        `json:"rules"`
	Pushes map[string]string `json:"pushes"` // what those are that are named in rules
	Other  string            `json:"other"`  // where to ask for what is free without a push
}

// AxisRule lists the times that a rule blocks.
type AxisRule struct {
	Name    string      `json:"name"`
	Quiet   bool        `json:"quiet"`
	Blocked []axisBlock `json:"blocked"`
}

// axisBlock is a stretch that is blocked. A bound that there is not is null.
type axisBlock struct {
	From  *int64   `json:"from"`
	Until *int64   `json:"until"`
	By    []string `json:"by"`   // ids of pushes
	More  int64    `json:"more"` // how many of them are not named
}

func (v *recipientView) data(a axis.Axis) string {
	d := axisData{
		From: a.From.Unix(), Until: a.Until.Unix(), At: v.At.Unix(), Now: v.Availability.AsOf.Unix(), Step: int64(v.Scale.Step() / time.Second), Zone: a.Zone.String(),
		Pushes: map[string]string{}, Other: v.Link("/free"),
	}
	if !v.Cursor.IsZero() {
		d.Cursor = v.Cursor.Unix()
	}
	d.Free, d.Rules = freeAndRules(v.Availability)
	for _, one := range v.Pushes {
		d.Pushes[one.ID] = describePush(one) + ", " + a.Stamp(one.SendAt)
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // it is texts and numbers
	}
	return string(text)
}

// freeAndRules is an availability as the script knows it.
func freeAndRules(a client.Availability) (free [][2]int64, rules []AxisRule) {
	free, rules = [][2]int64{}, []AxisRule{}
	for _, s := range a.Free {
		free = append(free, [2]int64{s.From.Unix(), s.Until.Unix()})
	}
	for _, r := range a.Rules {
		rule := AxisRule{Name: r.Rule, Quiet: r.Quiet, Blocked: []axisBlock{}}
		for _, b := range r.Blocked {
			rule.Blocked = append(rule.Blocked, axisBlock{maybeUnix(b.From), maybeUnix(b.Until), b.Conflicts, b.ConflictsOmitted})
		}
		rules = append(rules, rule)
	}
	return free, rules
}

func maybeUnix(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.Unix())
}

// spansWithout are the parts of some spans that others do not cover. Both are sorted, and touch none of their own.
func spansWithout(spans, others []client.Span) (left []client.Span) {
	for _, s := range spans {
		for _, o := range others {
			if !o.Until.After(s.From) || !o.From.Before(s.Until) {
				continue
			}
			if s.From.Before(o.From) {
				left = append(left, client.Span{From: s.From, Until: o.From})
			}
			s.From = o.Until
		}
		if s.From.Before(s.Until) {
			left = append(left, s)
		}
	}
	return left
}

// stretch is a row of the table that says the same as the axis.
type stretch struct {
	Lane        string
	Kind        string
	From, Until time.Time
	By          []string
	More        int64
}

// stretchesShown is the maximum number of rows of the table.
const stretchesShown = 500

// Stretches returns the free and blocked times, sorted by time.
func (v *recipientView) Stretches() []stretch {
	var all []stretch
	for _, s := range v.Availability.Free {
		all = append(all, stretch{Lane: "Free", Kind: "free", From: s.From, Until: s.Until})
	}
	for _, r := range v.Availability.Rules {
		kind := "rule"
		if r.Quiet {
			kind = "quiet"
		}
		for _, b := range r.Blocked {
			all = append(all, stretch{r.Rule, kind, b.From, b.Until, b.Conflicts, b.ConflictsOmitted})
		}
	}
	slices.SortStableFunc(all, func(a, b stretch) int { return a.From.Compare(b.From) })
	return all[:min(len(all), stretchesShown)]
}

// MoreStretches returns the number of rows that the table leaves out.
func (v *recipientView) MoreStretches() int {
	n := len(v.Availability.Free)
	for _, r := range v.Availability.Rules {
		n += len(r.Blocked)
	}
	return max(0, n-stretchesShown)
}
