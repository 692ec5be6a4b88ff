package channels

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// maxTo is the longest address of a test, in bytes.
const maxTo = 4096

// testForm is the body of a test.
type testForm struct {
	to      string
	message json.RawMessage
}

var testFields = rest.Table[testForm]{SchemaName: "ChannelTestForm", Fields: []rest.Field[testForm]{
	rest.Row("to", rest.Optional, rest.Text(func(f *testForm, s string) { f.to = s }, 0, maxTo), "The address to send to. A webhook may need none.", "+4512345678"),
	rest.Row("message", rest.Required, rest.AnyObject(func(f *testForm, raw []byte) { f.message = raw }), "The message, as in a push.", map[string]any{"body": "Hello"}),
}}

type testView struct {
	Outcome           push.Outcome `json:"outcome" enum:"delivered,refused,unknown"`
	Error             string       `json:"error" doc:"Why it was not delivered; empty if it was."`
	ProviderMessageID string       `json:"provider_message_id" doc:"The provider's id of the message, if it gave one."`
	Milliseconds      int64        `json:"ms" doc:"How long the attempt took."`
	TestsLeft         int          `json:"tests_left" doc:"The number of tests that you can make in this hour."`
}

// test makes one attempt to send a message.
func (h *channels) test(c *rest.Call) error {
	var f testForm
	if err := testFields.ReadBody(c, &f, &c.Errors); err != nil {
		return err
	}
	r, err := h.svc.Test(c.Request.Context(), c.Caller.Tenant, c.Text, f.to, f.message)
	if bad := (invalid.FieldErrors)(nil); errors.As(err, &bad) {
		c.Errors.AddAll("", rest.FieldErrors{List: under("body", bad)})
		return c.Errors.Err()
	}
	if err != nil {
		return h.noSuch(c, err)
	}
	return c.Answer(http.StatusOK, testView{r.Outcome, r.Error, r.ProviderMessageID, r.Took.Milliseconds(), r.Left})
}
