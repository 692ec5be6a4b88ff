package console

import (
	"strings"
	"testing"
)

// TestSegments shows the segments of a text, and why it has so many, where it is written, previewed and simulated.
func TestSegments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	text := strings.Repeat("a", 159) + "😀"
	words := "3 segments, UCS-2, because of “😀”"
	fields := []string{"recipient", "user-1", "channel", "sms", "to", "+4512345678", "message.body", text, "once", "a-key", "do"}
	b.post("/console/pushes/new", append(fields, "check")...).has(t, 200, "The text has "+words+".")
	b.follow(b.post("/console/pushes/new", append(fields, "submit")...)).has(t, 200, "<dd>"+words+"</dd>")
	if other := b.post("/console/pushes/new", "recipient", "user-2", "channel", "push", "message.body", text, "do", "check"); strings.Contains(other.Body, "segment") {
		t.Error(other.Body)
	}

	made := b.post("/console/campaigns/new", "channel", "sms", "shown_for", "sms", "name", "Sale", "message.body", "{{ text }} €")
	at := strings.TrimSuffix(made.Header.Get("Location"), "/audience")
	b.get(at+"/message").has(t, 200, "As it is written here: 1 segment, GSM-7.")
	b.follow(b.upload(at+"/audience", "recipient,to,text\na,+4512345678,Hi\nb,+4512345678,😀\nc,+4512345678,"+strings.Repeat("c", 160)+"\n",
		"header[0]", "recipient", "as[0]", "recipient", "name[0]", "", "header[1]", "to", "as[1]", "to", "name[1]", "", "header[2]", "text", "as[2]", "variable", "name[2]", "text"))
	b.get(at+"/preview").has(t, 200, "<dd>1 segment, UCS-2, because of “😀”</dd>", "<dd>2 segments, GSM-7</dd>")
	b.get(at+"/simulation").has(t, 200, "The texts have <strong>4 segments</strong>: 2 of 1 segment, 1 of 2 segments.")
}
