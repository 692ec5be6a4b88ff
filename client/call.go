package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// call is one call of the API.
type call struct {
	method, path string
	query        url.Values
	header       http.Header // besides the usual ones; nil: none
	body         any         // written as JSON; nil: there is none
	upload       io.Reader   // in the place of body
	media        string      // of upload

	// repeat allows a second call: the call changes nothing, or a second one changes nothing more.
	repeat bool
}

// path replaces the names in braces in a path by values, which may contain any text.
func path(pattern string, values ...string) string {
	for _, value := range values {
		before, rest, _ := strings.Cut(pattern, "{")
		_, after, _ := strings.Cut(rest, "}")
		pattern = before + url.PathEscape(value) + after
	}
	return pattern
}

// keyed gives a call an Idempotency-Key, so that it can be repeated. An empty key is replaced by a new one.
func (c call) keyed(key string) call {
	if key == "" {
		key = rand.Text()
	}
	c.header, c.repeat = http.Header{"Idempotency-Key": {key}}, true
	return c
}

// asOf sets If-Match: the API refuses the call if the resource was changed at another time. A zero time sets nothing.
func (c call) asOf(updatedAt time.Time) call {
	if !updatedAt.IsZero() {
		c.header = http.Header{"If-Match": {strconv.Quote(updatedAt.UTC().Format(time.RFC3339Nano))}}
	}
	return c
}

// ifVersion sets If-Match: the API refuses the call unless this version is in force. nil sets nothing. The call is not repeated, because the
// first one changes the version.
func (c call) ifVersion(version *int64) call {
	if version != nil {
		c.header, c.repeat = http.Header{"If-Match": {strconv.Quote(strconv.FormatInt(*version, 10))}}, false
	}
	return c
}

// ask makes a call and reads the JSON of the answer.
func ask[V any](ctx context.Context, c *Client, what call) (v V, err error) {
	err = c.read(ctx, what, &v)
	return v, err
}

// Get reads any path of the API, such as /v1/pushes, into a value of one of this package's types. Use it for operations without a method, or
// for one page of a list, whose next_page_token goes into the query of the next call as page_token.
func (c *Client) Get(ctx context.Context, path string, query url.Values, into any) error {
	return c.read(ctx, call{method: http.MethodGet, path: path, query: query, repeat: true}, into)
}

// read makes a call and reads the JSON of the answer into a value.
func (c *Client) read(ctx context.Context, what call, into any) error {
	answer, err := c.do(ctx, what)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("%s %s: the answer is no JSON that this client knows: %w", what.method, what.path, err)
	}
	return nil
}

// tell makes a call with no body in the answer.
func (c *Client) tell(ctx context.Context, what call) error {
	answer, err := c.do(ctx, what)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// Format is a format of lines.
type Format string

// The formats of lines.
const (
	CSV    Format = "text/csv"             // with a header line
	NDJSON Format = "application/x-ndjson" // an object in each line
)

// stream makes a call with any number of lines in the answer. The caller closes them.
func (c *Client) stream(ctx context.Context, what call) (io.ReadCloser, error) {
	answer, err := c.do(ctx, what)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// do makes a call, repeats it if that is safe, and returns a successful answer. The caller closes its body.
func (c *Client) do(ctx context.Context, what call) (*http.Response, error) {
	body, err := what.open()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", what.method, what.path, err)
	}
	pause := c.config.FirstPause
	for try := 0; ; try++ {
		answer, err := c.send(ctx, what, body)
		if err == nil {
			return answer, nil
		}
		wait, again := c.again(what, err, pause)
		if !again || try >= c.config.Retries || body.rewind() != nil || sleep(ctx, wait) != nil {
			return nil, err
		}
		pause = min(2*pause, c.config.LongestPause)
	}
}

// send makes one request. An answer that is a problem is an error.
func (c *Client) send(ctx context.Context, what call, body requestBody) (*http.Response, error) {
	target := c.address + what.path
	if len(what.query) > 0 {
		target += "?" + what.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, what.method, target, body.reader())
	if err != nil {
		return nil, err
	}
	req.ContentLength = body.size
	for name, values := range what.header {
		req.Header[name] = values
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body.media != "" {
		req.Header.Set("Content-Type", body.media)
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json, application/problem+json")
	}
	answer, err := c.config.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, problemOf(answer)
}

// requestBody is the body of a call. It can be sent again if it can go back to its start.
type requestBody struct {
	from  io.Reader // nil: there is none
	start int64     // of what is sent, in from
	size  int64     // -1: not known
	media string
}

func (c call) open() (requestBody, error) {
	if c.upload != nil {
		b := requestBody{from: c.upload, size: -1, media: c.media}
		if s, ok := c.upload.(io.Seeker); ok {
			if at, err := s.Seek(0, io.SeekCurrent); err == nil {
				end, err := s.Seek(0, io.SeekEnd)
				if _, back := s.Seek(at, io.SeekStart); err != nil || back != nil {
					return b, errors.Join(err, back)
				}
				b.start, b.size = at, end-at
			}
		}
		return b, nil
	}
	if c.body == nil {
		return requestBody{}, nil
	}
	text, err := json.Marshal(c.body)
	return requestBody{from: bytes.NewReader(text), size: int64(len(text)), media: "application/json"}, err
}

// reader hides other methods of a reader, so that net/http neither closes it nor repeats the request.
func (b requestBody) reader() io.Reader {
	if b.from == nil {
		return nil
	}
	return io.MultiReader(b.from)
}

var errOnce = errors.New("what was sent cannot be read again")

// rewind goes back to the start.
func (b requestBody) rewind() error {
	if b.from == nil {
		return nil
	}
	s, ok := b.from.(io.Seeker)
	if !ok || b.size < 0 {
		return errOnce
	}
	_, err := s.Seek(b.start, io.SeekStart)
	return err
}
