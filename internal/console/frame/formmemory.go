package frame

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/bulkhead"
)

// How many bytes a form may have: most have a few fields, and some a message, a policy or the lines of a list.
const (
	shortForm = 64 << 10
	longForm  = 1 << 20
)

// formCopies is how often a form is in memory while it is read: as it came, what the buffer for it grows to, and its fields.
const formCopies = 4

// formTurn is how long a form waits for memory.
const formTurn = 5 * time.Second

// DefaultFormMemory is how many bytes forms may take, if the console is not told.
const DefaultFormMemory = 16 << 20

// newFormMemory shares the memory of forms among tenants, each of which has half of it at most.
func newFormMemory(total int64) *bulkhead.Bulkhead[uuid.UUID] {
	return bulkhead.New[uuid.UUID](total, total/2)
}

// takeForm waits for memory for the form of a request, of at most so many bytes, and reads it. An upload is left to its handler, which reads
// it as it comes. done gives the memory back.
func (p *Page) takeForm(longest int64) (done func(), err error) {
	kind, _, _ := mime.ParseMediaType(p.Request.Header.Get("Content-Type"))
	bytes := formCopies * longest
	switch {
	case p.Request.Method != http.MethodPost:
		return func() {}, nil
	case kind == "multipart/form-data":
		bytes = 2 * (LongestColumns + longestHead)
	case kind != "application/x-www-form-urlencoded":
		return func() {}, nil
	case p.Request.ContentLength > longest:
		return nil, tooLong(longest)
	case p.Request.ContentLength >= 0:
		bytes = formCopies * p.Request.ContentLength
	}
	ctx, cancel := context.WithTimeout(p.Context(), formTurn)
	defer cancel()
	loan, err := p.site.forms.Acquire(ctx, p.Visitor.Caller.Tenant, bytes)
	if err != nil {
		return nil, &client.Problem{Title: "Too many forms at once", Status: http.StatusTooManyRequests,
			Detail: "Other forms of your team use all the memory for forms. Nothing was changed. Go back and send the form again in a moment."}
	}
	if kind == "multipart/form-data" {
		return loan.Release, nil
	}
	p.Request.Body = http.MaxBytesReader(p.Writer, p.Request.Body, longest)
	if err := p.Request.ParseForm(); err != nil {
		loan.Release()
		return nil, formProblem(err)
	}
	loan.Shrink(bytes / 2)
	return loan.Release, nil
}

// formProblem says why a form cannot be read.
func formProblem(err error) *client.Problem {
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLong(long.Limit)
	}
	return &client.Problem{Title: "Bad Request", Status: http.StatusBadRequest, Detail: "the form cannot be read: " + err.Error()}
}

func tooLong(longest int64) *client.Problem {
	most := "64 KiB"
	if longest == longForm {
		most = "1 MiB"
	}
	return &client.Problem{Title: "The form is too long", Status: http.StatusRequestEntityTooLarge,
		Detail: "A form can have up to " + most + " of text. Nothing was changed. Go back and shorten it."}
}

// LongestColumns is the maximum size of the fields before the file of an upload, in bytes.
const LongestColumns = 256 << 10

// longestHead is how many bytes may come before what a part of an upload has: mime/multipart takes ten megabytes of headers.
const longestHead = 16 << 10

// HeadReader is the body of an upload. While head is set, it reads no more than so many bytes.
type HeadReader struct {
	io.ReadCloser
	Head bool
	left int
}

var ErrLongHead = errors.New("the header of a part is too long")

// Next expects the header of the next part.
func (r *HeadReader) Next() { r.Head, r.left = true, longestHead }

func (r *HeadReader) Read(b []byte) (int, error) {
	if !r.Head {
		return r.ReadCloser.Read(b)
	}
	if r.left == 0 {
		return 0, ErrLongHead
	}
	n, err := r.ReadCloser.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, err
}
