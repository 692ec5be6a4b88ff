package pushes

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/rest"
)

// usualPush is the size of most pushes in an answer, in bytes.
const usualPush = 1024

func (v batchView) AppendJSON(b []byte) []byte {
	b = slices.Grow(b, len(v.Results)*usualPush)
	b = strconv.AppendInt(append(b, `{"accepted":`...), int64(v.Accepted), 10)
	b = strconv.AppendInt(append(b, `,"refused":`...), int64(v.Refused), 10)
	b = append(b, `,"results":`...)
	return append(appendAll(b, v.Results, (*resultView).AppendJSON), '}')
}

func (v pageView) AppendJSON(b []byte) []byte {
	b = append(slices.Grow(b, len(v.Pushes)*usualPush), `{"pushes":`...)
	b = appendAll(b, v.Pushes, func(p **pushView, b []byte) []byte { bulkhead.Yield(); return (*p).AppendJSON(b) })
	return append(appendText(b, `,"next_page_token":`, v.NextPageToken), '}')
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

func (v *pushView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"id":`, v.ID)
	b = appendText(b, `,"status":`, string(v.Status))
	b = appendText(b, `,"recipient":`, v.Recipient)
	b = appendText(b, `,"channel":`, v.Channel)
	b = appendText(b, `,"category":`, v.Category)
	b = appendMaybe(b, `,"campaign":`, v.Campaign)
	b = appendSome(b, `,"retry_of":`, v.RetryOf)
	b = appendText(b, `,"send_at":`, v.SendAt)
	b = appendText(b, `,"requested_send_at":`, v.RequestedSendAt)
	b = strconv.AppendBool(append(b, `,"deferred":`...), v.Deferred)
	b = appendSome(b, `,"next_attempt_at":`, v.NextAttemptAt)
	if v.Held != nil {
		b = v.Held.AppendJSON(append(b, `,"held":`...))
	}
	b = appendText(b, `,"expires_at":`, v.ExpiresAt)
	b = strconv.AppendInt(append(b, `,"attempts":`...), int64(v.Attempts), 10)
	b = appendSome(b, `,"to":`, v.To)
	b = appendRaw(b, `,"message":`, v.Message)
	b = appendRaw(b, `,"metadata":`, v.Metadata)
	b = appendSome(b, `,"last_error":`, v.LastError)
	b = strconv.AppendBool(append(b, `,"possibly_delivered":`...), v.PossiblyDelivered)
	b = appendText(b, `,"request_id":`, v.RequestID)
	b = appendText(b, `,"created_at":`, v.CreatedAt)
	b = appendText(b, `,"updated_at":`, v.UpdatedAt)
	b = append(b, `,"sends":`...)
	if len(v.Sends) == 0 {
		b = append(b, `[]`...)
	} else {
		b = appendValue(b, v.Sends)
	}
	if v.Quota != nil {
		b = appendAll(append(b, `,"quota":`...), v.Quota, (*usageView).AppendJSON)
	}
	return append(b, '}')
}

func (v *usageView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"rule":`, v.Rule)
	b = strconv.AppendInt(append(b, `,"limit":`...), int64(v.Limit), 10)
	b = strconv.AppendFloat(append(b, `,"window_seconds":`...), v.WindowSeconds, 'f', -1, 64)
	b = strconv.AppendInt(append(b, `,"used":`...), int64(v.Used), 10)
	b = strconv.AppendInt(append(b, `,"remaining":`...), int64(v.Remaining), 10)
	return append(b, '}')
}

func (p *quotaProblem) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"type":`, p.Type)
	b = appendText(b, `,"title":`, p.Title)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(p.Status), 10)
	b = appendSome(b, `,"detail":`, p.Detail)
	b = appendAll(append(b, `,"violations":`...), p.Violations, (*violationView).AppendJSON)
	b = appendMaybe(b, `,"next_available_at":`, p.NextAvailableAt)
	return append(appendMaybe(b, `,"previous_available_at":`, p.PreviousAvailableAt), '}')
}

func (v *violationView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"rule":`, v.Rule)
	b = strconv.AppendInt(append(b, `,"limit":`...), int64(v.Limit), 10)
	b = strconv.AppendFloat(append(b, `,"window_seconds":`...), v.WindowSeconds, 'f', -1, 64)
	b = appendSome(b, `,"per":`, v.Per)
	b = appendAll(append(b, `,"conflicts":`...), v.Conflicts, (*conflictView).AppendJSON)
	if v.Omitted != 0 {
		b = strconv.AppendInt(append(b, `,"conflicts_omitted":`...), int64(v.Omitted), 10)
	}
	if v.Until != nil {
		b = appendText(b, `,"until":`, *v.Until)
	}
	return append(b, '}')
}

func (v *conflictView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"id":`, v.ID)
	return append(appendText(b, `,"send_at":`, v.SendAt), '}')
}

func appendAll[T any](b []byte, all []T, one func(*T, []byte) []byte) []byte {
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(&all[i], b)
	}
	return append(b, ']')
}

func appendText(b []byte, name, text string) []byte {
	b, _ = jsontext.AppendQuote(append(b, name...), text) // the error reports invalid UTF-8, which was replaced
	return b
}

// appendSome omits an empty text.
func appendSome(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(b, name, text)
}

// appendMaybe writes null for nil.
func appendMaybe(b []byte, name string, text *string) []byte {
	if text == nil {
		return append(append(b, name...), `null`...)
	}
	return appendText(b, name, *text)
}

// appendRaw writes an object without the spaces between its tokens. The object is valid JSON.
func appendRaw(b []byte, name string, object []byte) []byte {
	b = append(b, name...)
	if object == nil {
		return append(b, `null`...)
	}
	from, inText := 0, false
	for i := 0; i < len(object); i++ {
		switch c := object[i]; {
		case c == '"':
			inText = !inText
		case inText && c == '\\':
			i++ // the escaped character may be a quotation mark
		case !inText && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			b = append(b, object[from:i]...)
			from = i + 1
		}
	}
	return append(b, object[from:]...)
}

// appendValue writes a value that writes itself, or another value, which is rare or short.
func appendValue(b []byte, v any) []byte {
	if a, ok := v.(rest.Appender); ok {
		return a.AppendJSON(b)
	}
	text := bytes.NewBuffer(b)
	e := json.NewEncoder(text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("an answer is no JSON: " + err.Error())
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
