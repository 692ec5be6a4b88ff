package console

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
)

func TestMaskJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"to":"+4512345678","message":{"title":"to"}}`:                  `{"to":"+4•••78","message":{"title":"to"}}`,
		`{"addresses":{"sms":"+4512345678","email":"aiko@example.com"}}`: `{"addresses":{"sms":"+4•••78","email":"a•••@example.com"}}`,
		`{"to":"short"}`: `{"to":"•••"}`,
		`{"pushes":[{"to":"+4512345678"},{"to":null}],"n":1.50}`:                `{"pushes":[{"to":"+4•••78"},{"to":null}],"n":1.50}`,
		`{"difference":{"role":{"from":"viewer-role","to":"administrator"}}}`:   `{"difference":{"role":{"from":"viewer-role","to":"administrator"}}}`,
		"{\"to\":\"+4512345678\"}\n{\"to\":\"+4587654321\"}\n":                  "{\"to\":\"+4•••78\"}\n{\"to\":\"+4•••21\"}",
		`{"to":{"to":"+4512345678"}}`:                                           `{"to":{"to":"+4•••78"}}`,
		`{"addresses":{"x":"@ada_lovelace","y":"https://user:pw@host/secret"}}`: `{"addresses":{"x":"@a•••ce","y":"ht•••et"}}`,
		`["to","+4512345678"]`:                                                  `["to","+4512345678"]`,
	} {
		var out strings.Builder
		if err := maskJSON(&out, strings.NewReader(in)); err != nil || strings.TrimSpace(out.String()) != want {
			t.Errorf("%s\n got %s, %v\nwant %s", in, out.String(), err, want)
		}
	}
	if err := maskJSON(&strings.Builder{}, strings.NewReader(`{"to":`)); err == nil {
		t.Error("half an answer is taken for a whole one")
	}
}

// TestPage_Masked: a role that is not to see addresses does not.
func TestPage_Masked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, err := b.api.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "user-1", To: "+4512345678", Message: client.Message{"title": "Hello"}, SendAt: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	b.get("/console/pushes/"+one.ID).has(t, 200, "+4512345678")
	b.who.Caller.Masked, b.who.Caller.Scopes = true, []string{push.ScopeRead}
	page := b.get("/console/pushes/" + one.ID)
	page.has(t, 200, "+4•••78")
	if strings.Contains(page.Body, "4512345678") {
		t.Error("the page shows the address")
	}
}
