package httpapi

import (
	"strings"
	"testing"
)

// TestPreview: the messages of the first five lines, or of one recipient, with the columns before the attributes, or what is wrong with them.
func TestPreview(t *testing.T) {
	b := setup(t)
	b.send("PUT", "/v1/recipients/a", `{"attributes":{"name":"stored","plan":"gold","id":12345678901234567890,"user":{"age":7}}}`).must(t, 201)
	b.send("PUT", "/v1/recipients/a", `{"attributes":{"name":"another"}}`, "Authorization", "Bearer "+b.other).must(t, 201)
	id := b.campaign(`{"message":{"title":"{{ name | default: 'you' }}\nof {{ recipient }}","body":"{{ plan }} {{ id }} {{ user.age }} {{ to }}","html":"<i>{{ name }}</i>"}}`)
	if r := b.send("POST", "/v1/campaigns/"+id+"/preview", "").must(t, 200); r.text != `{"messages":[]}`+"\n" {
		t.Error(r.text)
	}
	b.upload(id, "recipient,to,name\na,+45,\nb,,B\nc,,C\nd,,D\n\ne,,<E>\nf,,F\n", 200)
	r := b.send("POST", "/v1/campaigns/"+id+"/preview", "").must(t, 200)
	want := `{"messages":[{"recipient":"a","line":2,"to":"+45","message":{"title":"you of a","body":"gold 12345678901234567890 7 +45","html":"<i></i>"},"error":null},` +
		`{"recipient":"b","line":3,"message":null,"error":"message.body: there is no variable plan; the filter default gives a value for that"},`
	if !strings.HasPrefix(r.text, want) || len(r.at(t, "messages").([]any)) != 5 {
		t.Errorf("%s, want %s", r.text, want)
	}
	b.upload(id, `{"recipient":"x","plan":"p","id":98765432109876543210,"user":"u","name":"<b>"}`, 200)
	b.send("PATCH", "/v1/campaigns/"+id, `{"message":{"body":"{{ plan }} {{ id }}","html":"<i>{{ name }}</i>"}}`).must(t, 200)
	one := b.send("POST", "/v1/campaigns/"+id+"/preview", `{"recipient":"x"}`).must(t, 200)
	if want := `{"messages":[{"recipient":"x","line":1,"message":{"body":"p 98765432109876543210","html":"<i>&lt;b&gt;</i>"},"error":null}]}` + "\n"; one.text != want {
		t.Errorf("%s, want %s", one.text, want)
	}

	// The most text comes first; of equals, the first line.
	b.upload(id, "recipient,plan,id\na,1,1\nb,long,longer\nc,1,2\nd,longest,of all\ne,1,3\nf,1,4\ng,1,5\n", 200)
	longest := b.send("POST", "/v1/campaigns/"+id+"/preview", `{"longest":true}`).must(t, 200)
	var order []string
	for i := range longest.at(t, "messages").([]any) {
		order = append(order, longest.at(t, "messages", i, "recipient").(string))
	}
	if got := strings.Join(order, ""); got != "dbace" {
		t.Errorf("the longest are %s", got)
	}
	b.send("POST", "/v1/campaigns/"+id+"/preview", `{"longest":true,"recipient":"a"}`).must(t, 422, "invalid-request")

	// An address that is empty is another thing than none: then the attribute is used.
	b.send("PUT", "/v1/recipients/x", `{"attributes":{"to":"stored"}}`).must(t, 201)
	b.send("PATCH", "/v1/campaigns/"+id, `{"message":{"body":"<{{ to }}>"}}`).must(t, 200)
	for text, want := range map[string]string{
		"recipient,to\nx,+45\n": "<+45>", "recipient,to\nx,\n": "<>", "recipient\nx\n": "<stored>",
		`{"recipient":"x","to":"+45"}`: "<+45>", `{"recipient":"x","to":""}`: "<>", `{"recipient":"x","to":null}`: "<stored>", `{"recipient":"x"}`: "<stored>",
	} {
		b.upload(id, text, 200)
		if r := b.send("POST", "/v1/campaigns/"+id+"/preview", "").must(t, 200); r.at(t, "messages", 0, "message", "body") != want {
			t.Errorf("%q: %s, want %s", text, r.text, want)
		}
	}
	b.upload(id, "recipient\ny\n", 200)
	if r := b.send("POST", "/v1/campaigns/"+id+"/preview", "").must(t, 200); !strings.Contains(r.text, `there is no variable to;`) {
		t.Error(r.text)
	}
	b.upload(id, `{"recipient":"x"}`, 200)
	b.send("POST", "/v1/campaigns/"+id+"/preview", `{"recipient":"a"}`).must(t, 404, "not-found")
	b.send("POST", "/v1/campaigns/"+id+"/preview", `{"recipient":""}`).must(t, 422, "invalid-request")
	b.send("POST", "/v1/campaigns/"+id+"/preview", `{"other":1}`).must(t, 422, "invalid-request")
	b.send("POST", "/v1/campaigns/"+id+"/preview", `{"recipient":"x"}`, "Authorization", "Bearer "+b.other).must(t, 404, "not-found")

	// It loops for ever, and grows without end.
	b.send("PATCH", "/v1/campaigns/"+id, `{"message":{"body":"{% for i in (1..1000000000) %}{% for i in (1..1000000000) %}{% endfor %}{% endfor %}"}}`).must(t, 200)
	if r := b.send("POST", "/v1/campaigns/"+id+"/preview", "").must(t, 200); !strings.Contains(r.text, `"message":null,"error":"message.body: it takes too long`) {
		t.Error(r.text)
	}
}
