package campaigns

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// The largest numbers of simulations at a time, of all tenants and of each; and the memory of one, for the lines and messages of a chunk.
const (
	simulationsAtOnce  = 4
	simulationsPerSelf = 1
	simulationBytes    = 16 << 20
)

// simulationView is the result that a start of a campaign would have.
type simulationView struct {
	Recipients   int             `json:"recipients" doc:"accepted, deferred, refused, opted_out and invalid together."`
	Accepted     int             `json:"accepted" doc:"Recipients accepted at their time."`
	Deferred     int             `json:"deferred" doc:"Recipients accepted at a later time."`
	Refused      int             `json:"refused" doc:"Recipients for whom the quota or a cap has no place."`
	OptedOut     int             `json:"opted_out"`
	Invalid      int             `json:"invalid" doc:"No push can be created from their lines."`
	ByRule       map[string]int  `json:"by_rule" doc:"Refused and deferred recipients, by rule: each counts once for every rule, quiet hours and cap that blocks its time."`
	Delays       []delayView     `json:"delays" doc:"The delays of the deferred recipients. Each is counted once."`
	FinishesAt   *string         `json:"finishes_at" format:"date-time" nullable:"true" doc:"An estimate of when the last push leaves, by the throughput of the channel, after your pushes that wait for it now, if nothing else comes. null: nothing would be sent."`
	WouldExpire  int             `json:"would_expire" doc:"Accepted and deferred recipients whose pushes would expire before the throughput of the channel lets them leave."`
	CollidesWith []collisionView `json:"collides_with" doc:"The twenty campaigns with sends that block the most refused and deferred recipients. If many sends fill a rule, only the nearest hundred count."`
	BetterStarts []startView     `json:"better_starts" doc:"At most five quarters of an hour in the 24 hours from the campaign's start or now on, at which more recipients would be accepted at their time, the best first. A campaign with a local_time is treated as if it had a send_at; its day begins where clocks are furthest ahead."`
	Segments     *segmentsView   `json:"segments,omitempty" doc:"The segments of the texts of accepted and deferred recipients. Absent if the channel sends no text messages."`
}

// segmentsView counts the segments of text messages.
type segmentsView struct {
	Total   int            `json:"total" doc:"The segments of all of them: what carriers charge for."`
	ByCount map[string]int `json:"by_count" doc:"Recipients, by the number of segments of their texts."`
}

func segmentsViewOf(s *campaign.Segments) *segmentsView {
	if s == nil {
		return nil
	}
	v := &segmentsView{s.Total, make(map[string]int, len(s.ByCount))}
	for segments, recipients := range s.ByCount {
		v.ByCount[strconv.Itoa(segments)] = recipients
	}
	return v
}

type delayView struct {
	UpToSeconds *int `json:"up_to_seconds" nullable:"true" doc:"null: longer than all other delays."`
	Recipients  int  `json:"recipients"`
}

type collisionView struct {
	Campaign   string `json:"campaign" format:"uuid"`
	Name       string `json:"name"`
	Recipients int    `json:"recipients"`
}

type startView struct {
	SendAt   string `json:"send_at" format:"date-time"`
	Accepted int    `json:"accepted"`
}

// simulatedView is the outcome that a recipient would have.
type simulatedView struct {
	Recipient string                    `json:"recipient"`
	Outcome   campaign.SimulatedOutcome `json:"outcome"`
	SendAt    *string                   `json:"send_at"`
	Reason    string                    `json:"reason"`
}

func simulationViewOf(s *campaign.Simulation) simulationView {
	return simulationView{
		Recipients: s.Recipients, Accepted: s.Accepted, Deferred: s.Deferred, Refused: s.Refused, OptedOut: s.OptedOut, Invalid: s.Invalid, ByRule: s.ByRule,
		Delays: rest.ViewsOf(s.Delays, func(d campaign.Delay) delayView {
			v := delayView{Recipients: d.Recipients}
			if d.UpTo > 0 {
				v.UpToSeconds = new(int(d.UpTo.Seconds()))
			}
			return v
		}),
		FinishesAt: rest.MaybeTime(s.FinishesAt), WouldExpire: s.WouldExpire,
		CollidesWith: rest.ViewsOf(s.CollidesWith, func(c campaign.Collision) collisionView {
			return collisionView{c.Campaign.String(), c.Name, c.Recipients}
		}),
		Segments:     segmentsViewOf(s.Segments),
		BetterStarts: rest.ViewsOf(s.BetterStarts, func(s booking.Start) startView { return startView{rest.Stamp(s.At), s.Accepted} }),
	}
}

func simulatedViewOf(s campaign.Simulated) simulatedView {
	return simulatedView{s.Recipient, s.Outcome, rest.MaybeTime(s.SendAt), s.Reason}
}

// simulateCampaign answers with the result that a start would have. Its time depends on the audience; it ends when the caller disconnects.
func (h *simulations) simulateCampaign(c *rest.Call) error {
	id, change, err := h.readSimulation(c)
	if err != nil {
		return err
	}
	place, err := h.turns.Acquire(c.Request.Context(), c.Caller.Tenant, 1)
	if err != nil {
		return err
	}
	defer place.Release()
	out := &simulationWriter{c: c, control: http.NewResponseController(c.Writer)}
	each := out.write
	if !wantsLines(c.Request.Header) {
		each = nil
	}
	sum, err := h.simulator.SimulateChanged(c.Writer.Whole, c.Caller.Tenant, id, change, c.Caller.Caps, each)
	switch {
	case err != nil && out.begun:
		c.BreakOff(err)
	case err != nil:
		return rest.NoSuch("campaign", err)
	case each == nil:
		_ = out.control.SetWriteDeadline(time.Now().Add(lists.AnswerTime)) // only tests have no deadlines
		return c.Answer(http.StatusOK, simulationViewOf(sum))
	}
	if err := out.send(func(lines *json.Encoder) error { return lines.Encode(simulationViewOf(sum)) }); err != nil {
		c.BreakOff(err)
	}
	return nil
}

// readSimulation reads the campaign and the change to simulate. The body may be empty.
func (h *simulations) readSimulation(c *rest.Call) (id uuid.UUID, change campaign.Change, err error) {
	var found rest.FieldErrors
	id = c.ID
	if err := c.Reserve(simulationBytes); err != nil {
		return id, change, err
	}
	if c.Request.ContentLength == 0 {
		return id, change, c.Errors.Err()
	}
	body, err := c.Body(maxCampaignBody)
	if err != nil || len(body) == 0 {
		return id, change, cmp.Or(err, c.Errors.Err())
	}
	err = c.Compute(func() error {
		return rest.ReadWhole(body, &c.Errors, func(r *rest.Reader) { campaignChanges.Read(r, &change, &found) })
	})
	if err != nil {
		return id, change, err
	}
	if len(c.Errors.List) == 0 && len(found.List) > 0 {
		old, err := h.svc.Campaign(c.Request.Context(), c.Caller.Tenant, id)
		if err == nil {
			err = findAllFaults(c, h.svc, change, old, &found)
		}
		if err != nil {
			return id, change, rest.NoSuch("campaign", err)
		}
	}
	c.Errors.AddAll("body", found)
	return id, change, c.Errors.Err()
}

// simulationBody documents an optional body.
func simulationBody(s *rest.Spec) *huma.RequestBody {
	body := campaignChanges.Body(s, map[string]any{"send_at": rest.TimeExample})
	body.Required = false
	return body
}

// wantsLines reports whether Accept prefers NDJSON to JSON, which is the default.
func wantsLines(h http.Header) bool {
	return lists.Liking(h, lists.MediaNDJSON) > lists.Liking(h, "application/json")
}

// simulationWriter sends a line for each recipient. It bounds the time of waiting for the caller by the bytes that were sent.
type simulationWriter struct {
	c       *rest.Call
	control *http.ResponseController
	begun   bool
	text    bytes.Buffer
	written int64
	waited  time.Duration
}

// write computes the lines of a chunk in the tenant's turn, and sends them.
func (w *simulationWriter) write(all []campaign.Simulated) error {
	return w.send(func(lines *json.Encoder) error {
		for i := range all {
			if err := lines.Encode(simulatedViewOf(all[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// send sends some lines.
func (w *simulationWriter) send(encode func(lines *json.Encoder) error) error {
	w.text.Reset()
	lines := json.NewEncoder(&w.text)
	lines.SetEscapeHTML(false)
	if err := w.c.Computing.Do(w.c.Writer.Whole, w.c.Caller.Tenant, func() error { return encode(lines) }); err != nil {
		return err
	}
	if !w.begun {
		w.begun = true
		w.c.Header("Content-Type", lists.MediaNDJSON)
		w.c.Writer.WriteHeader(http.StatusOK)
	}
	began := time.Now()
	allowed := lists.FirstBodyTime + time.Duration(w.written/lists.BytesASecond)*time.Second - w.waited
	_ = w.control.SetWriteDeadline(began.Add(allowed)) // only tests have no deadlines
	n, err := w.c.Writer.Write(w.text.Bytes())
	if err == nil {
		err = w.control.Flush()
	}
	w.written, w.waited = w.written+int64(n), w.waited+time.Since(began)
	return err
}

// NewSimulations returns the bulkhead of simulations.
func NewSimulations() *bulkhead.Bulkhead[uuid.UUID] {
	return bulkhead.New[uuid.UUID](simulationsAtOnce, simulationsPerSelf)
}

var exampleSimulation = simulationViewOf(&campaign.Simulation{
	Recipients: 1000, Accepted: 862, Deferred: 85, Refused: 11, OptedOut: 40, Invalid: 2, ByRule: map[string]int{"per-day": 90, "night": 6},
	Delays:       []campaign.Delay{{UpTo: time.Minute, Recipients: 3}, {UpTo: 5 * time.Minute}, {UpTo: 15 * time.Minute}, {UpTo: time.Hour, Recipients: 12}, {UpTo: 4 * time.Hour, Recipients: 70}, {UpTo: 24 * time.Hour}, {}},
	FinishesAt:   rest.ExampleTime(3 * time.Hour),
	CollidesWith: []campaign.Collision{{Campaign: uuid.MustParse(rest.ExampleID), Name: "Autumn sale", Recipients: 71}},
	BetterStarts: []booking.Start{{At: rest.ExampleTime(2 * time.Hour), Accepted: 940}, {At: rest.ExampleTime(105 * time.Minute), Accepted: 902}},
})

// simulated documents an answer as JSON and as NDJSON.
func simulated(all map[string]*huma.Response) {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	_ = lines.Encode(simulatedViewOf(campaign.Simulated{Recipient: "user-42", Outcome: campaign.SimulatedAccepted, SendAt: rest.ExampleTime(0)})) // to memory
	_ = lines.Encode(simulatedViewOf(campaign.Simulated{Recipient: "user-43", Outcome: campaign.SimulatedRefused, Reason: "quota-exceeded"}))
	_ = lines.Encode(exampleSimulation)
	quoted, _ := json.Marshal(text.String())
	all["200"].Content[lists.MediaNDJSON] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(quoted)}
}

func (h *simulations) routes(s *rest.Spec) []rest.Operation {
	return []rest.Operation{{
		ID: "simulate-campaign", Method: http.MethodPost, Path: Path + "/{id}/simulate", Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: h.simulateCampaign,
		Summary: "Simulate a campaign",
		Description: "Returns the result that a start would have now, and books nothing: if nothing is submitted, moved or canceled in between, the start has the same result for each recipient. " +
			"Only a draft with an audience can be simulated, and only if it could be started. With a body, the draft is simulated as if it had been changed by a PATCH with that body; the draft itself is not changed. A tenant's simulations run one at a time. A large audience takes about a second per 20,000 recipients.\n\n" +
			"With Accept: application/x-ndjson, the answer has a line for each recipient, in no particular order, and the totals as the last line. An outcome is accepted, deferred, refused, opted_out or invalid; send_at is null if the recipient would get nothing; " +
			"reason is the name of a problem, or describes what is invalid. If the connection breaks off, the answer is incomplete.",
		Body: simulationBody(s), Status: http.StatusOK, Answer: "The result of a start.", Example: exampleSimulation,
		Problems: []rest.Kind{rest.NotFound, State}, Finish: simulated,
	}}
}
