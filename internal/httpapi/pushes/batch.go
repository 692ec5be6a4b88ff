package pushes

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

const (
	batchPath  = "/v1/pushes/batch"
	maxMembers = rest.MaxBatch
)

// batchView has the results of a batch.
type batchView struct {
	Accepted int          `json:"accepted"`
	Refused  int          `json:"refused" doc:"The pushes that were not accepted, for any reason."`
	Results  []resultView `json:"results" doc:"One for each push, in the same order."`
}

// resultView is the result of one push of a batch: Push or Problem.
type resultView struct {
	Index    int       `json:"index"`
	Status   int       `json:"status" doc:"201, or the status of the problem."`
	Push     *pushView `json:"push,omitempty"`
	Problem  any       `json:"problem,omitempty" doc:"The problem that a single submit would get."`
	Replayed bool      `json:"replayed,omitempty" doc:"An earlier request with the same Idempotency-Key created this push."`
}

// TransformSchema lists the problems that a member can have.
func (*resultView) TransformSchema(r huma.Registry, schema *huma.Schema) *huma.Schema {
	among := []rest.Kind{rest.InvalidRequest, QuotaExceeded, QuietHours, OptedOut, Suppressed, TenantCap, PushGone, BatchRefused}
	problem := rest.ProblemSchema(r, ExampleOf, among...)
	problem.Description = schema.Properties["problem"].Description
	schema.Properties["problem"] = problem
	return schema
}

// batchProblem is the answer to an atomic batch that was refused.
type batchProblem struct {
	rest.Problem
	Accepted int          `json:"accepted"`
	Refused  int          `json:"refused"`
	Results  []resultView `json:"results"`
}

// batchForm is a batch in a request: the readable parts of its pushes, and the errors in each of the others.
type batchForm struct {
	rest.FieldErrors // of the batch itself
	pushes           []schedule.Request
	found            []rest.FieldErrors // of each push
	atomic           bool
}

var batchFields = rest.Table[batchForm]{SchemaName: "NewBatch", Fields: []rest.Field[batchForm]{
	rest.Row("pushes", rest.Required, rest.Array(1, maxMembers, PushFields.Schema, (*batchForm).readMember), "The pushes are decided in this order; an earlier one can block a later one.", nil),
	rest.Row("atomic", rest.Optional, rest.Boolean(func(b *batchForm, v bool) { b.atomic = v }).Or("false"), "Book all of them or none.", nil),
}}

func (b *batchForm) readMember(r *rest.Reader, i int, _ string, _ *rest.FieldErrors) {
	if i == cap(b.pushes) {
		b.pushes = slices.Grow(b.pushes, min(3*i+4, maxMembers)) // requests are large to copy
	}
	bulkhead.Yield()
	b.pushes, b.found = append(b.pushes[:i], schedule.Request{}), append(b.found[:i], rest.FieldErrors{})
	from := r.Offset()
	PushFields.Read(r, &b.pushes[i], &b.found[i])
	if n := r.Offset() - from; n > rest.MaxBody {
		b.found[i].Add("", fmt.Sprintf("must have at most %d bytes, has %d", rest.MaxBody, n), nil)
	}
}

func (h *pushes) batch(c *rest.Call) error {
	b, options, err := h.readWholeBatch(c)
	if err != nil {
		return h.forms.counted(err, max(1, len(b.pushes)))
	}
	members := make([]schedule.Member, len(b.pushes))
	for i := range b.pushes {
		members[i] = schedule.Member{Request: b.pushes[i], Err: under(place(i), b.found[i])}
	}
	if err := h.writer.SubmitBatch(c.Request.Context(), c.Caller.Tenant, members, b.atomic, options); err != nil {
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
				c.Note(m.Decision.Push.ID)
			}
		}
	}
	return c.Compute(func() error { return h.answerBatch(c, members, &b) })
}

// readWholeBatch reads a batch with its options, and rejects a batch that is invalid as a whole.
func (h *pushes) readWholeBatch(c *rest.Call) (b batchForm, o schedule.Options, err error) {
	o = options(c, &c.Errors)
	body, err := c.Object(rest.MaxBatchBody, &c.Errors, func(r *rest.Reader) { batchFields.Read(r, &b, &b.FieldErrors) })
	if err != nil {
		return b, o, err
	}
	if err := h.checkBatch(c, &b, &c.Errors); err != nil {
		return b, o, err
	}
	if o.IdempotencyKey != "" {
		o.RequestHash = rest.RequestHash(batchPath, body)
	}
	return b, o, nil
}

func place(i int) string { return rest.Item("body.pushes", i) }

// checkBatch rejects a batch as a whole if its envelope is invalid, or if it is atomic and any member is invalid. The errors of
// a rejected batch include the errors of all members.
func (h *pushes) checkBatch(c *rest.Call, b *batchForm, bad *rest.FieldErrors) error {
	refused := len(bad.List)+len(b.List) > 0
	for i := range b.found {
		refused = refused || b.atomic && len(b.found[i].List) > 0
	}
	bad.AddAll("body", b.FieldErrors)
	var (
		at         []int
		incomplete []*schedule.Request
	)
	for i := range b.found {
		if b.found[i].Object != nil && (refused || len(b.found[i].List) > 0) {
			at, incomplete = append(at, i), append(incomplete, &b.pushes[i])
		}
	}
	validate := h.forms.validator(c, incomplete...)
	for n, i := range at {
		validate.complete(&PushFields, incomplete[n], &b.found[i])
	}
	for i := range b.found {
		if refused {
			bad.AddAll(place(i), b.found[i])
		}
	}
	return bad.Err()
}

// invalid returns the errors that the schedule found in an atomic batch.
func (b *batchForm) invalid(members []schedule.Member) error {
	var all rest.FieldErrors
	for i, m := range members {
		var wrong invalid.FieldErrors
		if errors.As(m.Err, &wrong) {
			blame(&PushFields, wrong, &b.found[i])
			all.AddAll(place(i), b.found[i])
		}
	}
	return all.Err()
}

func (h *pushes) answerBatch(c *rest.Call, members []schedule.Member, b *batchForm) error {
	v := batchView{Results: make([]resultView, len(members))}
	replayed := 0
	for i, m := range members {
		bulkhead.Yield()
		if m.Err != nil {
			v.Refused++
			if refusal, ok := errors.AsType[*schedule.Refusal](m.Err); ok {
				fewConflicts(refusal, max(quota.MaxConflicts/10, 10*quota.MaxConflicts/len(members)))
			}
			p, foreseen := c.ProblemOf(explain(m.Err, place(i), &PushFields, b.found[i]))
			if !foreseen {
				return m.Err
			}
			v.Results[i] = resultView{Index: i, Status: p.Base().Status, Problem: p}
			continue
		}
		v.Accepted++
		p, again := &m.Decision.Push, m.Decision.Outcome == booking.Replayed
		if p.Rendering != nil && c.Request.Context().Err() == nil {
			p.Message = messageOf(p)
		}
		if again {
			replayed++
		}
		v.Results[i] = resultView{Index: i, Status: http.StatusCreated, Push: bookedView(h.texts, m.Decision), Replayed: again}
	}
	if replayed > 0 && replayed == v.Accepted {
		c.Writer.Header().Set("Idempotency-Replayed", "true")
	}
	if !b.atomic || v.Refused == 0 {
		return c.Answer(http.StatusOK, v)
	}
	return &refusedBatch{v}
}

// refusedBatch is the error of an atomic batch without a place for all members.
type refusedBatch struct{ batchView }

func (e *refusedBatch) Error() string {
	return fmt.Sprintf("%d pushes of an atomic batch not booked", e.Refused)
}

func (e *refusedBatch) problem() rest.Problemer {
	without, kind := 0, TenantCap
	for _, r := range e.Results {
		switch r.Problem.(type) {
		case *quotaProblem:
			without, kind = without+1, QuotaExceeded
		case *optOutProblem:
			without++
			if kind == TenantCap {
				kind = OptedOut
			}
		case *suppressedProblem:
			without++
			if kind == TenantCap {
				kind = Suppressed
			}
		case *capProblem:
			without++
		}
	}
	detail := fmt.Sprintf("%d of %d pushes find no place, so nothing was booked", without, len(e.Results))
	return &batchProblem{Problem: kind.Because(detail), Accepted: 0, Refused: len(e.Results), Results: e.Results}
}

// booked documents the headers of an answer to a submit.
func booked(all map[string]*huma.Response) {
	rest.AddHeader(all["201"], "Location", "The push's path. Absent with validate_only.")
	rest.AddHeader(all["201"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created the push.")
}

// bookedBatch documents the headers of an answer to a batch, and the answer to an atomic batch that is refused.
func bookedBatch(s *rest.Spec, all map[string]*huma.Response) {
	rest.AddHeader(all["200"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created all the accepted pushes.")
	refused := s.Response("`quota-exceeded`, or `tenant-cap-exceeded` if only the tenant's caps refuse: the batch is atomic, and some of its pushes have no place. Nothing was booked.", nil)
	example := (&refusedBatch{batchView{Refused: 2, Results: []resultView{
		{Index: 0, Status: QuotaExceeded.Status, Problem: quotaProblemOf(exampleRefusal)},
		{Index: 1, Status: BatchRefused.Status, Problem: &refusedExample},
	}}}).problem()
	refused.Content = map[string]*huma.MediaType{
		rest.MediaProblem: {Schema: s.Schema(batchProblem{}), Example: rest.PlainJSON(example)},
	}
	s.Distinguish(batchProblem{}, QuotaExceeded, OptedOut, Suppressed, TenantCap)
	all["409"] = s.Share("AtomicBatchRefused", refused)
}

func (v batchView) AppendJSON(b []byte) []byte {
	b = slices.Grow(b, len(v.Results)*usualPush)
	b = strconv.AppendInt(append(b, `{"accepted":`...), int64(v.Accepted), 10)
	b = strconv.AppendInt(append(b, `,"refused":`...), int64(v.Refused), 10)
	b = append(b, `,"results":`...)
	return append(appendAll(b, v.Results, (*resultView).AppendJSON), '}')
}

func (v *resultView) AppendJSON(b []byte) []byte {
	bulkhead.Yield()
	b = strconv.AppendInt(append(b, `{"index":`...), int64(v.Index), 10)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(v.Status), 10)
	if v.Push != nil {
		b = v.Push.AppendJSON(append(b, `,"push":`...))
	}
	if v.Problem != nil {
		b = appendValue(append(b, `,"problem":`...), v.Problem)
	}
	if v.Replayed {
		b = append(b, `,"replayed":true`...)
	}
	return append(b, '}')
}
