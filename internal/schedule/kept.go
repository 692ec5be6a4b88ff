package schedule

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// text is the refusal as encoding/json reads it. It would write it, too, in five times the time: every refused submit has one.
func (k *keptRefusal) text() []byte {
	b := make([]byte, 0, 384)
	b = appendTime(append(b, `{"At":`...), k.At)
	b = appendQuoted(append(b, `,"Kind":`...), string(k.Kind))
	b = appendQuoted(append(b, `,"Channel":`...), k.Channel)
	b = appendQuoted(append(b, `,"Category":`...), k.Category)
	b = appendTime(append(b, `,"SendAt":`...), k.SendAt)
	b = appendQuoted(append(b, `,"Reason":`...), k.Reason)
	b = appendQuoted(append(b, `,"Name":`...), k.Name)
	b = append(b, `,"Rules":[`...)
	for i, rule := range k.Rules {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, rule)
	}
	b = append(b, `],"Conflicts":[`...)
	for i, c := range k.Conflicts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"id":"`...), c.ID.String()...), `","send_at":`...)
		b = append(appendTime(b, c.SendAt), '}')
	}
	return append(b, `]}`...)
}

func appendQuoted(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // the error is about bytes that are no UTF-8, which it has replaced
	return b
}

func appendTime(b []byte, at time.Time) []byte {
	return append(at.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}
