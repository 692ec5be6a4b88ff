package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
)

const (
	batchPath  = "/v1/pushes/batch"
	maxMembers = maxBatch
)

// batchView is what became of a batch.
type batchView struct {
	Accepted int          `json:"accepted"`
	Refused  int          `json:"refused" doc:"The pushes that were not accepted, for any reason."`
	Results  []resultView `json:"results" doc:"One for each push, in the same order."`
}

// resultView is what became of one push of a batch: Push or Problem.
type resultView struct {
	Index    int       `json:"index"`
	Status   int       `json:"status" doc:"201, or the status of the problem."`
	Push     *pushView `json:"push,omitempty"`
	Problem  any       `json:"problem,omitempty" doc:"The problem that a single submit would get."`
	Replayed bool      `json:"replayed,omitempty" doc:"An earlier request with the same Idempotency-Key created this push."`
}

// TransformSchema says which problems a member may have.
func (*resultView) TransformSchema(r huma.Registry, schema *huma.Schema) *huma.Schema {
	among := []kind{invalidRequest, quotaExceeded, quietHours, optedOut, tenantCap, pushGone, batchRefused}
	problem := oneOfProblems(r, pushExample, among...)
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

// batchForm is a batch as a caller asks for it: what could be read, and what is wrong with the rest, but for what is
// wrong with a single push.
type batchForm struct {
	fieldErrors
	forms  []form
	atomic bool
}

var batchFields = table[batchForm]{schemaName: "NewBatch", fields: []field[batchForm]{
	row("pushes", required, array(1, maxMembers, pushFields.schema, (*batchForm).readMember), "The pushes are decided in this order; an earlier one can block a later one.", nil),
	row("atomic", optional, boolean(func(b *batchForm, v bool) { b.atomic = v }).or("false"), "Book all of them or none.", nil),
}}

func (b *batchForm) readMember(r *reader, i int, _ string, _ *fieldErrors) {
	if i == cap(b.forms) {
		b.forms = slices.Grow(b.forms, min(3*i+4, maxMembers)) // forms are large to copy
	}
	bulkhead.Yield()
	b.forms = append(b.forms[:i], form{})
	f, from := &b.forms[i], r.offset()
	f.read(r, &pushFields)
	if n := r.offset() - from; n > maxBody {
		f.add("", fmt.Sprintf("must have at most %d bytes, has %d", maxBody, n), nil)
	}
}

func (h *pushes) batch(c *call) error {
	b, options, err := h.readWholeBatch(c)
	if err != nil {
		return h.forms.counted(err, max(1, len(b.forms)))
	}
	members := make([]schedule.Member, len(b.forms))
	for i := range b.forms {
		members[i] = schedule.Member{Request: b.forms[i].Request, Err: b.forms[i].under(place(i))}
	}
	if err := h.writer.SubmitBatch(c.r.Context(), c.caller.Tenant, members, b.atomic, options); err != nil {
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
	return c.compute(func() error { return h.answerBatch(c, members, &b) })
}

// readWholeBatch reads a batch with what goes along, and refuses one that is faulty as a whole.
func (h *pushes) readWholeBatch(c *call) (b batchForm, o schedule.Options, err error) {
	o = options(c, &c.bad)
	body, err := c.object(maxBatchBody, &c.bad, func(r *reader) { batchFields.read(r, &b, &b.fieldErrors) })
	if err != nil {
		return b, o, err
	}
	if err := h.checkBatch(c, &b, &c.bad); err != nil {
		return b, o, err
	}
	if o.IdempotencyKey != "" {
		o.RequestHash = requestHash(batchPath, body)
	}
	return b, o, nil
}

func place(i int) string { return item("body.pushes", i) }

// checkBatch refuses a batch as a whole, if its envelope is faulty, or if it is atomic and any member is. Where other
// faults are answered anyway, those of all members go along.
func (h *pushes) checkBatch(c *call, b *batchForm, bad *fieldErrors) error {
	refused := len(bad.list)+len(b.list) > 0
	for i := range b.forms {
		refused = refused || b.atomic && len(b.forms[i].list) > 0
	}
	bad.addAll("body", b.fieldErrors)
	var incomplete []*form
	for i := range b.forms {
		if f := &b.forms[i]; refused || len(f.list) > 0 {
			incomplete = append(incomplete, f)
		}
	}
	validate := h.forms.validator(c, incomplete...)
	for _, f := range incomplete {
		f.complete(validate)
	}
	for i := range b.forms {
		if refused {
			bad.addAll(place(i), b.forms[i].fieldErrors)
		}
	}
	return bad.err()
}

// invalid gathers the faults that the schedule found in an atomic batch.
func (b *batchForm) invalid(members []schedule.Member) error {
	var all fieldErrors
	for i, m := range members {
		var wrong invalid.FieldErrors
		if errors.As(m.Err, &wrong) {
			b.forms[i].blame(wrong)
			all.addAll(place(i), b.forms[i].fieldErrors)
		}
	}
	return all.err()
}

func (h *pushes) answerBatch(c *call, members []schedule.Member, b *batchForm) error {
	v := batchView{Results: make([]resultView, len(members))}
	replayed := 0
	for i, m := range members {
		bulkhead.Yield()
		if m.Err != nil {
			v.Refused++
			if refusal, ok := errors.AsType[*schedule.Refusal](m.Err); ok {
				fewConflicts(refusal, max(quota.MaxConflicts/10, 10*quota.MaxConflicts/len(members)))
			}
			p, foreseen := c.problemOf(b.forms[i].explain(place(i), m.Err))
			if !foreseen {
				return m.Err
			}
			v.Results[i] = resultView{Index: i, Status: p.problem().Status, Problem: p}
			continue
		}
		v.Accepted++
		if m.Result.Push.Rendering != nil && c.r.Context().Err() == nil {
			m.Result.Push.Message = messageOf(&m.Result.Push)
		}
		if m.Result.Replayed {
			replayed++
		}
		v.Results[i] = resultView{Index: i, Status: http.StatusCreated, Push: bookedView(m.Result), Replayed: m.Result.Replayed}
	}
	if replayed > 0 && replayed == v.Accepted {
		c.w.Header().Set("Idempotency-Replayed", "true")
	}
	if !b.atomic || v.Refused == 0 {
		return c.answer(http.StatusOK, v)
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
		case *optOutProblem:
			without++
			if kind == tenantCap {
				kind = optedOut
			}
		case *capProblem:
			without++
		}
	}
	detail := fmt.Sprintf("%d of %d pushes find no place, so nothing was booked", without, len(e.Results))
	return &batchProblem{Problem: kind.because(detail), Accepted: 0, Refused: len(e.Results), Results: e.Results}
}

// booked documents the headers of an answer to a submit.
func booked(all map[string]*huma.Response) {
	addHeader(all["201"], "Location", "The push's path. Absent with validate_only.")
	addHeader(all["201"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created the push.")
}

// bookedBatch documents the headers of an answer to a batch, and the answer to an atomic batch that is refused.
func bookedBatch(s *spec, all map[string]*huma.Response) {
	addHeader(all["200"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created all the accepted pushes.")
	refused := s.response("`quota-exceeded`, or `tenant-cap-exceeded` if only the tenant's caps refuse: the batch is atomic, and some of its pushes have no place. Nothing was booked.", nil)
	example := (&refusedBatch{batchView{Refused: 2, Results: []resultView{
		{Index: 0, Status: quotaExceeded.Status, Problem: quotaProblemOf(exampleRefusal)},
		{Index: 1, Status: batchRefused.Status, Problem: &refusedExample},
	}}}).problem()
	refused.Content = map[string]*huma.MediaType{
		mediaProblem: {Schema: s.schema(batchProblem{}), Example: plainJSON(example)},
	}
	s.distinguish(batchProblem{}, quotaExceeded, optedOut, tenantCap)
	all["409"] = s.share("AtomicBatchRefused", refused)
}
