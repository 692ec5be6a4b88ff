package rest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/push"
)

// Share makes a response a component of the document, and returns a reference to it.
func (s *Spec) Share(name string, r *huma.Response) *huma.Response {
	s.responses[name] = r
	return &huma.Response{Ref: responsePrefix + name}
}

// resolved follows the reference to a response, if it is one.
func resolved(doc *huma.OpenAPI, r *huma.Response) *huma.Response {
	if name, is := strings.CutPrefix(r.Ref, responsePrefix); is {
		return doc.Components.Responses[name]
	}
	return r
}

// problem returns a reference to the response with a status, which is one of several kinds of problems.
func (s *Spec) problem(status int, among ...Kind) *huma.Response {
	res := s.Response("", nil)
	s.addRateLimits(res)
	media := &huma.MediaType{Schema: s.problems(among), Examples: map[string]*huma.Example{}}
	res.Content = map[string]*huma.MediaType{MediaProblem: media}
	for _, k := range among {
		example := s.exampleProblem(k)
		example.Base().Status = status
		res.Description = strings.TrimPrefix(res.Description+"\n\n`"+k.Name+"`: "+k.When, "\n\n")
		media.Examples[k.Name] = &huma.Example{Summary: k.Title, Value: PlainJSON(example)}
		switch k {
		case Unauthorized:
			s.addHeader(res, "WWW-Authenticate", "")
		case UnsupportedMedia:
			s.addHeader(res, "Accept-Encoding", "If the Content-Encoding is the reason: the accepted ones.")
		case RateLimited, Unavailable:
			s.addHeader(res, "Retry-After", "")
		}
	}
	return s.Share(problemName(status, among), res)
}

// problemName names a component after its kinds of problems, or after an unusual status.
func problemName(status int, among []Kind) string {
	if status != among[0].Status {
		return strings.ReplaceAll(http.StatusText(status), " ", "")
	}
	var name strings.Builder
	for i, k := range among {
		if i > 0 {
			name.WriteString("Or")
		}
		for word := range strings.SplitSeq(k.Name, "-") {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return name.String()
}

// problems returns the schema of a response that is one of several kinds of problems. The member type distinguishes them.
func (s *Spec) problems(among []Kind) *huma.Schema {
	one := &huma.Schema{Discriminator: &huma.Discriminator{PropertyName: "type", Mapping: map[string]string{}}}
	for _, k := range s.kinds {
		if !slices.Contains(among, k) {
			continue
		}
		schema := s.Schema(s.exampleProblem(k))
		one.Discriminator.Mapping[k.Because("").Type] = schema.Ref
		if !slices.ContainsFunc(one.OneOf, func(s *huma.Schema) bool { return s.Ref == schema.Ref }) {
			one.OneOf = append(one.OneOf, schema)
		}
	}
	if len(one.OneOf) == 1 {
		return one.OneOf[0]
	}
	return one
}

// tellProblemsApart gives each problem schema its types, so that no problem fits two schemas.
// Problem itself fits all other types, including future ones.
func (s *Spec) tellProblemsApart() {
	types := maps.Clone(s.apart)
	plain := s.Schema(Problem{}).Ref
	var special []any
	for _, k := range s.kinds {
		if ref := s.Schema(s.exampleProblem(k)).Ref; ref != plain {
			types[ref] = append(types[ref], k.Because("").Type)
			special = append(special, k.Because("").Type)
		}
	}
	for ref, those := range types {
		s.schemas.SchemaFromRef(ref).Properties["type"].Enum = those
	}
	s.schemas.SchemaFromRef(plain).Properties["type"].Not = &huma.Schema{Enum: special}
}

// Distinguish adds the types of problems that a schema is for, besides the kinds that have it as their example.
func (s *Spec) Distinguish(problem any, types ...Kind) {
	ref := s.Schema(problem).Ref
	for _, k := range types {
		s.apart[ref] = append(s.apart[ref], k.Because("").Type)
	}
}

// ProblemSchema returns the schema of a member that is one of some kinds of problems, for a type that transforms its schema.
func ProblemSchema(schemas huma.Registry, example func(k Kind) Problemer, among ...Kind) *huma.Schema {
	return (&Spec{schemas: schemas, kinds: among, example: example}).problems(among)
}

// exampleProblem returns an example of a kind of problem.
func (s *Spec) exampleProblem(k Kind) Problemer {
	switch k {
	case InvalidRequest:
		bad := &BadRequest{}
		bad.Add("body.recipient", "is required", nil)
		bad.Add("body.send_at", "needs a time zone, like "+TimeExample, "2026-12-01T09:00:00")
		return bad.problem()
	case Forbidden:
		return scopeProblemOf(&push.ScopeError{Scope: push.ScopeWrite, Detail: "the API key lacks the scope " + push.ScopeWrite})
	}
	if p := s.example(k); p != nil {
		return p
	}
	p := k.Because(k.When)
	return &p
}
