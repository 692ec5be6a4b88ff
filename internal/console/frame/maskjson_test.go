package frame

import (
	"strings"
	"testing"
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
