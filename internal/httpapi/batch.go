package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
)

const (
	batchPath  = "/v1/pushes/batch"
	maxMembers = 1000
)

// newBatch is the schema of a batch.
type newBatch struct {
	Pushes []newPush `json:"pushes" minItems:"1" maxItems:"1000" doc:"They conflict with one another in this order."`
	Atomic bool      `json:"atomic,omitempty" default:"false" doc:"Book all of them or none."`
}

// batchView is what became of a batch.
type batchView struct {
	Accepted int          `json:"accepted"`
	Refused  int          `json:"refused" doc:"All that were not accepted, for whatever reason."`
	Results  []resultView `json:"results" doc:"One for each push, in the same order."`
}

// resultView is what became of one push of a batch: Push or Problem.
type resultView struct {
	Index    int       `json:"index"`
	Status   int       `json:"status" doc:"201, or the status of the problem."`
	Push     *pushView `json:"push,omitempty"`
	Problem  any       `json:"problem,omitempty" doc:"As a single submit would answer."`
	Replayed bool      `json:"replayed,omitempty" doc:"It was accepted before, by a request with the same Idempotency-Key."`
}

// TransformSchema says which problems a member may have.
func (*resultView) TransformSchema(r huma.Registry, schema *huma.Schema) *huma.Schema {
	among := []kind{invalidRequest, quotaExceeded, tenantCap, batchRefused}
	problem := (&spec{r}).problems(func(k kind) bool { return slices.Contains(among, k) })
	problem.Description = schema.Properties["problem"].Description
	schema.Properties["problem"] = problem
	return schema
}

// batchProblem is the answer to an atomic batch that was refused.
type batchProblem struct {
	Problem
	Accepted int          `json:"accepted"`
	Refused  int          `json:"refused"`
	Results  []resultView `json:"results"`
}

// batchForm is a batch as it came.
type batchForm struct {
	fields // the faults of the envelope
	forms  []form
	atomic bool
}

// readBatch reads a batch. Beyond maxMembers it only counts.
func readBatch(r *reader) batchForm {
	var b batchForm
	given := false
	for name := range r.members {
		switch string(name) {
		case "pushes":
			given = true
			b.readPushes(r)
		case "atomic":
			if raw := r.value(); r.err == nil {
				b.atomic = b.bool("atomic", raw)
			}
		default:
			if raw := r.value(); r.err == nil {
				b.unknown(name, raw)
			}
		}
	}
	if !given {
		b.missing("pushes")
	}
	return b
}

func (b *batchForm) readPushes(r *reader) {
	if r.peek() != '[' {
		if raw := r.value(); r.err == nil {
			b.bad("pushes", "must be an array", raw)
		}
		return
	}
	n := 0
	b.forms = nil
	for range r.elements {
		if n++; n > maxMembers {
			r.value()
			continue
		}
		from := r.offset()
		f := readForm(r)
		if n := r.offset() - from; n > maxBody {
			f.bad("", fmt.Sprintf("must have at most %d bytes, has %d", maxBody, n), nil)
		}
		b.forms = append(b.forms, f)
	}
	if n == 0 || n > maxMembers {
		b.faults = append(b.faults, invalid.FieldError{Field: "pushes", Message: fmt.Sprintf("must have 1 to %d pushes, has %d", maxMembers, n)})
	}
}

// batch books up to a thousand pushes.
func (a *api) batch(c *call) error {
	b, options, err := a.readWholeBatch(c)
	if err != nil {
		return a.counted(err, max(1, len(b.forms)))
	}
	members := make([]schedule.Member, len(b.forms))
	for i := range b.forms {
		members[i] = schedule.Member{Request: b.forms[i].Request, Err: b.forms[i].under(place(i))}
	}
	if err := a.svc.SubmitBatch(c.r.Context(), c.caller.Tenant, members, b.atomic, options); err != nil {
		return err
	}
	if b.atomic {
		if err := b.invalid(members); err != nil {
			return err
		}
	}
	if !options.ValidateOnly {
		for _, m := range members {
			if m.Err == nil {
				c.note(m.Result.Push.ID)
			}
		}
	}
	return c.compute(func() error { return a.answerBatch(c, members, &b) })
}

// readWholeBatch reads a batch with what goes along, and refuses one that is
// faulty as a whole.
func (a *api) readWholeBatch(c *call) (b batchForm, o schedule.Options, err error) {
	var bad faults
	o = c.options(&bad)
	body, err := c.object(maxBatchBody, &bad, func(r *reader) { b = readBatch(r) })
	if err != nil {
		return b, o, err
	}
	if err := a.checkBatch(&b, &bad); err != nil {
		return b, o, err
	}
	if o.IdempotencyKey != "" {
		o.RequestHash = requestHash(batchPath, body)
	}
	return b, o, nil
}

func place(i int) string { return item("body.pushes", i) }

// item is the location of an element of an array.
func item(array string, i int) string { return array + "[" + strconv.Itoa(i) + "]" }

// checkBatch refuses a batch as a whole, if its envelope is faulty, or if it
// is atomic and any member is. Where other faults are answered anyway, those
// of all members go along.
func (a *api) checkBatch(b *batchForm, bad *faults) error {
	anyMember := false
	for i := range b.forms {
		if f := &b.forms[i]; len(f.faults) > 0 {
			anyMember = true
			f.complete(a.svc)
		}
	}
	if len(bad.list)+len(b.faults) == 0 && !(b.atomic && anyMember) {
		return nil
	}
	bad.addAll("body", b.faults)
	for i := range b.forms {
		f := &b.forms[i]
		if len(f.faults) == 0 {
			f.complete(a.svc)
		}
		bad.addAll(place(i), f.faults)
	}
	return bad.err()
}

// invalid gathers the faults that the schedule found in an atomic batch.
func (b *batchForm) invalid(members []schedule.Member) error {
	var all faults
	for i, m := range members {
		var wrong invalid.FieldErrors
		if errors.As(m.Err, &wrong) {
			b.forms[i].blame(wrong)
			all.addAll(place(i), b.forms[i].faults)
		}
	}
	return all.err()
}

func (a *api) answerBatch(c *call, members []schedule.Member, b *batchForm) error {
	v := batchView{Results: make([]resultView, len(members))}
	replayed := 0
	for i, m := range members {
		if m.Err != nil {
			v.Refused++
			if refusal, ok := errors.AsType[*schedule.Refusal](m.Err); ok {
				fewConflicts(refusal, max(quota.MaxConflicts/10, 10*quota.MaxConflicts/len(members)))
			}
			p, foreseen := problemOf(b.forms[i].explain(place(i), m.Err))
			if !foreseen {
				return m.Err
			}
			v.Results[i] = resultView{Index: i, Status: p.problem().Status, Problem: p}
			continue
		}
		v.Accepted++
		if m.Result.Replayed {
			replayed++
		}
		v.Results[i] = resultView{Index: i, Status: http.StatusCreated, Push: bookedView(m.Result), Replayed: m.Result.Replayed}
	}
	if replayed > 0 && replayed == v.Accepted {
		c.w.Header().Set("Idempotency-Replayed", "true")
	}
	if !b.atomic || v.Refused == 0 {
		return a.answer(c.w, http.StatusOK, v)
	}
	return &refusedBatch{v}
}

// refusedBatch is an atomic batch without a place for all of its members.
type refusedBatch struct{ batchView }

func (e *refusedBatch) Error() string {
	return fmt.Sprintf("%d pushes of an atomic batch not booked", e.Refused)
}

func (e *refusedBatch) problem() problemer {
	without, kind := 0, tenantCap
	for _, r := range e.Results {
		switch r.Problem.(type) {
		case *quotaProblem:
			without, kind = without+1, quotaExceeded
		case *capProblem:
			without++
		}
	}
	detail := fmt.Sprintf("%d of %d pushes find no place, so none was booked", without, len(e.Results))
	return &batchProblem{Problem: kind.because(detail), Accepted: 0, Refused: len(e.Results), Results: e.Results}
}

func batchDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "submit-batch", Method: http.MethodPost, Path: batchPath, Tags: []string{tagPushes},
		Summary: "Submit up to 1000 pushes",
		Description: "Books many pushes in one transaction. Without atomic, those that find a place are booked and the others are not; " +
			"each has its own result. With atomic: true all are booked or none: a refusal answers 409 with the results, and any fault 422.",
		Parameters:  []*huma.Param{s.validateOnly(), s.idempotencyKey()},
		RequestBody: s.body(newBatch{}, exampleBatchRequest()),
		Responses: s.bookedBatch(s.responses(http.StatusOK, "What became of each push.", batchView{}, exampleBatch(),
			invalidRequest, keyReused, tooLarge, unsupportedMedia)),
	}
}
