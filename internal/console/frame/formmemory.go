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

// Maximum sizes of a form in bytes. Most forms have a few fields; some have a message, a policy or the rows of a list.
const (
	shortForm = 64 << 10
	longForm  = 1 << 20
)

// formCopies is the number of copies of a form in memory while it is read: the bytes, the growing buffer, and the fields.
const formCopies = 4

// formTurn is the longest time that a form waits for memory.
const formTurn = 5 * time.Second

// DefaultFormMemory is the default limit of memory for forms, in bytes.
const DefaultFormMemory = 16 << 20

// newFormMemory shares the memory for forms among tenants. A tenant gets half of it at most.
func newFormMemory(total int64) *bulkhead.Bulkhead[uuid.UUID] {
	return bulkhead.New[uuid.UUID](total, total/2)
}

// takeForm waits for memory for the form of a request and reads the form. longest is the maximum size in bytes. The handler of an upload
// reads it as it arrives. done releases the memory.
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

// formProblem returns the problem for a form that cannot be read.
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

// longestHead is the maximum size of the headers of a part of an upload, in bytes: mime/multipart accepts ten megabytes.
const longestHead = 16 << 10

// HeadReader is the body of an upload. While Head is set, it reads at most longestHead bytes.
type HeadReader struct {
	io.ReadCloser
	Head bool
	left int
}

var ErrLongHead = errors.New("the header of a part is too long")

// Next prepares for the header of the next part.
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
