package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/ownchannels"
	"github.com/sendquota/sendquota/internal/testenv"
)

// ownForms has a request for each type of channel, with every secret.
var ownForms = map[string]string{
	"webhook": `{"type":"webhook","url":"https://a.example.com/CANARY","secret":"CANARY0123456789","previous_secret":"CANARY0123456788","throughput":{"rate":5}}`,
	"sms":     `{"type":"sms","account_sid":"CANARY","api_key_sid":"CANARY","api_key_secret":"CANARY","from":"+4512345678","status_callback":"https://a.example.com/CANARY","throughput":{"rate":5,"unit":"segments"}}`,
	"email":   `{"type":"email","host":"smtp.example.com","username":"CANARY","password":"CANARY","from":"Shop <shop@example.com>","levels":{"urgent":1}}`,
	"fcm":     `{"type":"fcm","credentials":"CANARY","project_id":"shop"}`,
	"apns":    `{"type":"apns","key":"CANARY","key_id":"ABCDE12345","team_id":"ABCDE12345","topic":"com.example"}`,
	"log":     `{"type":"log","timeout":"2s","backoff":{"first":"1s"}}`,
}

// TestOpenAPI_OwnChannels: the document has a schema of requests and one of answers for each type. What is sent and answered fits its own
// type, and no other; all secrets are masked, and an answer with a plain secret does not fit.
func TestOpenAPI_OwnChannels(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc := servedDocument().doc.Components.Schemas
	of := func(name string, mode huma.ValidateMode, v any) []error {
		return validate(doc, &huma.Schema{Ref: "#/components/schemas/" + name}, mode, v)
	}
	types := ownchannels.ChannelTypes()
	if len(types) != len(ownForms) {
		t.Fatalf("%d types and %d forms", len(types), len(ownForms))
	}
	for _, one := range types {
		name := strings.ToUpper(one.Type[:1]) + one.Type[1:] + "Channel"
		var form map[string]any
		testenv.Check(t, json.Unmarshal([]byte(ownForms[one.Type]), &form))
		if errs := of(name+"Form", huma.ModeWriteToServer, form); len(errs) > 0 {
			t.Errorf("a request does not fit %sForm: %v", name, errs)
		}
		form["tpye"] = 1
		if len(of(name+"Form", huma.ModeWriteToServer, form)) == 0 {
			t.Errorf("%sForm fits an unknown member", name)
		}
		created := b.send("PUT", "/v1/channels/own-"+one.Type, ownForms[one.Type]).must(t, 201) // fits the schema of the operation
		answer := b.send("GET", "/v1/channels/own-"+one.Type, "").must(t, 200)
		if strings.Contains(created.text+answer.text, "CANARY") {
			t.Errorf("%s: a secret is in an answer: %s", one.Type, answer.text)
		}
		for _, other := range types {
			errs := of(strings.ToUpper(other.Type[:1])+other.Type[1:]+"Channel", huma.ModeReadFromServer, map[string]any(answer.body))
			if (len(errs) == 0) != (other.Type == one.Type) {
				t.Errorf("an answer of %s compared with the schema of %s: %v", one.Type, other.Type, errs)
			}
		}
		secrets := 0
		for _, m := range one.Members {
			if m.Form.Kind != ownchannels.KindSecret || answer.body[m.Name] == nil {
				continue
			}
			secrets++
			plain := maps.Clone(answer.body)
			plain[m.Name] = "text"
			if len(of(name, huma.ModeReadFromServer, plain)) == 0 {
				t.Errorf("%s fits an answer with the text of %s", name, m.Name)
			}
		}
		if want := strings.Count(ownForms[one.Type], "CANARY"); secrets != want {
			t.Errorf("%d of %d secrets are masked: %s", secrets, want, answer.text)
		}
	}
	if operator := b.send("GET", "/v1/channels/push", "").must(t, 200); fmt.Sprint(operator.body) != "map[name:push owner:operator]" {
		t.Errorf("the operator's channel: %s", operator.text)
	}
}

// TestChannels_BadName: a channel with a bad name is not stored, although nothing else is wrong.
func TestChannels_BadName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"Bad%20Name", "%2e%2e", "a%2Fb", strings.Repeat("a", 65), "%C3%A4"} {
		r := b.send("PUT", "/v1/channels/"+name, ownForms["log"]).must(t, 422)
		if !strings.Contains(r.text, "path.name") {
			t.Errorf("%s: %s", name, r.text)
		}
	}
	if n := testenv.Query[int64](t, b.url, `SELECT count(*) FROM tenant_channels WHERE tenant_id = $1`, b.tenant); n != 0 {
		t.Errorf("%d channels are stored", n)
	}
}
