package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
)

// How many simulations may go on at a time, of all tenants and of each; and the memory of one, for the lines and messages of a chunk.
const (
	simulationsAtOnce  = 4
	simulationsPerSelf = 1
	simulationBytes    = 16 << 20
)

// simulationView is what a start of a campaign would do.
type simulationView struct {
	Recipients   int             `json:"recipients" doc:"accepted, deferred, refused, opted_out and invalid together."`
	Accepted     int             `json:"accepted" doc:"Recipients accepted at their time."`
	Deferred     int             `json:"deferred" doc:"Recipients accepted at a later time."`
	Refused      int             `json:"refused" doc:"Recipients for whom the quota or a cap has no place."`
	OptedOut     int             `json:"opted_out"`
	Invalid      int             `json:"invalid" doc:"No push can be created from their lines."`
	ByRule       map[string]int  `json:"by_rule" doc:"Refused and deferred recipients, by rule: each counts once for every rule, quiet hours and cap that blocks its time."`
	Delays       []delayView     `json:"delays" doc:"The delays of the deferred recipients. Each is counted once."`
	CollidesWith []collisionView `json:"collides_with" doc:"The twenty campaigns with sends that block the most refused and deferred recipients. If many sends fill a rule, only the nearest hundred count."`
	BetterStarts []startView     `json:"better_starts" doc:"At most five quarters of an hour in the 24 hours from the campaign's start or now on, at which more recipients would be accepted at their time, the best first. A campaign with a local_time is treated as if it had a send_at; its day begins where clocks are furthest ahead."`
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

// simulatedView is what would become of a recipient.
type simulatedView struct {
	Recipient string                    `json:"recipient"`
	Outcome   campaign.SimulatedOutcome `json:"outcome"`
	SendAt    *string                   `json:"send_at"`
	Reason    string                    `json:"reason"`
}

func simulationViewOf(s *campaign.Simulation) simulationView {
	return simulationView{
		Recipients: s.Recipients, Accepted: s.Accepted, Deferred: s.Deferred, Refused: s.Refused, OptedOut: s.OptedOut, Invalid: s.Invalid, ByRule: s.ByRule,
		Delays: viewsOf(s.Delays, func(d campaign.Delay) delayView {
			v := delayView{Recipients: d.Recipients}
			if d.UpTo > 0 {
				v.UpToSeconds = new(int(d.UpTo.Seconds()))
			}
			return v
		}),
		CollidesWith: viewsOf(s.CollidesWith, func(c campaign.Collision) collisionView {
			return collisionView{c.Campaign.String(), c.Name, c.Recipients}
		}),
		BetterStarts: viewsOf(s.BetterStarts, func(s booking.Start) startView { return startView{stamp(s.At), s.Accepted} }),
	}
}

func simulatedViewOf(s campaign.Simulated) simulatedView {
	return simulatedView{s.Recipient, s.Outcome, maybe(s.SendAt), s.Reason}
}

// simulateCampaign says what a start would do. It may take as long as the audience is large: it ends when the caller goes.
func (h *simulations) simulateCampaign(c *call) error {
	id, change, err := h.readSimulation(c)
	if err != nil {
		return err
	}
	place, err := h.turns.Acquire(c.r.Context(), c.caller.Tenant, 1)
	if err != nil {
		return err
	}
	defer place.Release()
	out := &simulationWriter{c: c, control: http.NewResponseController(c.w)}
	each := out.write
	if !wantsLines(c.r.Header) {
		each = nil
	}
	sum, err := h.simulator.SimulateChanged(c.w.whole, c.caller.Tenant, id, change, c.caller.Caps, each)
	switch {
	case err != nil && out.begun:
		c.breakOff(err)
	case err != nil:
		return noSuch("campaign", err)
	case each == nil:
		_ = out.control.SetWriteDeadline(time.Now().Add(importAnswerTime)) // without deadlines there is no server, but a test
		return c.answer(http.StatusOK, simulationViewOf(sum))
	}
	if err := out.send(func(lines *json.Encoder) error { return lines.Encode(simulationViewOf(sum)) }); err != nil {
		c.breakOff(err)
	}
	return nil
}

// readSimulation reads which campaign is to be simulated, and as what: the body may be empty.
func (h *simulations) readSimulation(c *call) (id uuid.UUID, change campaign.Change, err error) {
	var found fieldErrors
	id = c.id
	if err := c.reserve(simulationBytes); err != nil {
		return id, change, err
	}
	if c.r.ContentLength == 0 {
		return id, change, c.bad.err()
	}
	body, err := c.body(maxCampaignBody)
	if err != nil || len(body) == 0 {
		return id, change, cmp.Or(err, c.bad.err())
	}
	err = c.compute(func() error {
		return readWhole(body, &c.bad, func(r *reader) { campaignChanges.read(r, &change, &found) })
	})
	if err != nil {
		return id, change, err
	}
	if len(c.bad.list) == 0 && len(found.list) > 0 {
		old, err := h.svc.Campaign(c.r.Context(), c.caller.Tenant, id)
		if err == nil {
			err = findAllFaults(c, h.svc, change, old, &found)
		}
		if err != nil {
			return id, change, noSuch("campaign", err)
		}
	}
	c.bad.addAll("body", found)
	return id, change, c.bad.err()
}

// simulationBody need not be there.
func simulationBody(s *spec) *huma.RequestBody {
	body := campaignChanges.body(s, map[string]any{"send_at": timeExample})
	body.Required = false
	return body
}

// wantsLines reports whether Accept likes NDJSON better than JSON, which is for those who do not say.
func wantsLines(h http.Header) bool {
	return liking(h, mediaNDJSON) > liking(h, "application/json")
}

// simulationWriter sends a line for each recipient. It bounds the time that it waits for the caller, by what that has taken.
type simulationWriter struct {
	c       *call
	control *http.ResponseController
	begun   bool
	text    bytes.Buffer
	written int64
	waited  time.Duration
}

// write sends the lines of a chunk, when it is the tenant's turn to compute them.
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
	if err := w.c.computing.Do(w.c.w.whole, w.c.caller.Tenant, func() error { return encode(lines) }); err != nil {
		return err
	}
	if !w.begun {
		w.begun = true
		w.c.header("Content-Type", mediaNDJSON)
		w.c.w.WriteHeader(http.StatusOK)
	}
	began := time.Now()
	allowed := firstBodyTime + time.Duration(w.written/bytesASecond)*time.Second - w.waited
	_ = w.control.SetWriteDeadline(began.Add(allowed)) // without deadlines there is no server, but a test
	n, err := w.c.w.Write(w.text.Bytes())
	if err == nil {
		err = w.control.Flush()
	}
	w.written, w.waited = w.written+int64(n), w.waited+time.Since(began)
	return err
}

// newSimulations shares the simulations that go on at a time.
func newSimulations() *bulkhead.Bulkhead[uuid.UUID] {
	return bulkhead.New[uuid.UUID](simulationsAtOnce, simulationsPerSelf)
}

var exampleSimulation = simulationViewOf(&campaign.Simulation{
	Recipients: 1000, Accepted: 862, Deferred: 85, Refused: 11, OptedOut: 40, Invalid: 2, ByRule: map[string]int{"per-day": 90, "night": 6},
	Delays:       []campaign.Delay{{UpTo: time.Minute, Recipients: 3}, {UpTo: 5 * time.Minute}, {UpTo: 15 * time.Minute}, {UpTo: time.Hour, Recipients: 12}, {UpTo: 4 * time.Hour, Recipients: 70}, {UpTo: 24 * time.Hour}, {}},
	CollidesWith: []campaign.Collision{{Campaign: uuid.MustParse(exampleID), Name: "Autumn sale", Recipients: 71}},
	BetterStarts: []booking.Start{{At: exampleTime(2 * time.Hour), Accepted: 940}, {At: exampleTime(105 * time.Minute), Accepted: 902}},
})

// simulated documents an answer as JSON and as NDJSON.
func simulated(all map[string]*huma.Response) {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	_ = lines.Encode(simulatedViewOf(campaign.Simulated{Recipient: "user-42", Outcome: campaign.SimulatedAccepted, SendAt: exampleTime(0)})) // to memory
	_ = lines.Encode(simulatedViewOf(campaign.Simulated{Recipient: "user-43", Outcome: campaign.SimulatedRefused, Reason: "quota-exceeded"}))
	_ = lines.Encode(exampleSimulation)
	quoted, _ := json.Marshal(text.String())
	all["200"].Content[mediaNDJSON] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(quoted)}
}

func (h *simulations) routes(s *spec) []operation {
	return []operation{{
		id: "simulate-campaign", method: http.MethodPost, path: campaignsPath + "/{id}/simulate", tag: tagCampaigns, scope: push.ScopeCampaignsRead, serve: h.simulateCampaign,
		summary: "Simulate a campaign",
		description: "Returns the result that a start would have now, and books nothing: if nothing is submitted, moved or canceled in between, the start has the same result for each recipient. " +
			"Only a draft with an audience can be simulated, and only if it could be started. With a body, the draft is simulated as if it had been changed by a PATCH with that body; the draft itself is not changed. A tenant's simulations run one at a time. A large audience takes about a second per 20,000 recipients.\n\n" +
			"With Accept: application/x-ndjson, the answer has a line for each recipient, in no particular order, and the totals as the last line. An outcome is accepted, deferred, refused, opted_out or invalid; send_at is null if the recipient would get nothing; " +
			"reason is the name of a problem, or describes what is invalid. If the connection breaks off, the answer is incomplete.",
		body: simulationBody(s), status: http.StatusOK, answer: "The result of a start.", example: exampleSimulation,
		problems: []kind{notFound, campaignState}, finish: simulated,
	}}
}
