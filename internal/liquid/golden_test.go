package liquid_test

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/liquid"
)

// TestMessage_Golden: messages become what Liquid's public conformance suite wants of them. GOLDEN_LIQUID names its file,
// golden_liquid.json of https://github.com/jg-rp/golden-liquid; without it, the tests beside this one have a part of it.
func TestMessage_Golden(t *testing.T) {
	file := os.Getenv("GOLDEN_LIQUID")
	if file == "" {
		t.Skip("GOLDEN_LIQUID names no file")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests []struct {
			Name, Template, Result string
			Data                   json.RawMessage
			Templates              map[string]string
			Invalid                bool
			Results                []string
			Tags                   []string
		}
	}
	if err := json.Unmarshal(text, &suite); err != nil {
		t.Fatal(err)
	}
	same, all, unknown := 0, 0, 0
	for _, c := range suite.Tests {
		if c.Templates != nil || slices.ContainsFunc(c.Tags, func(tag string) bool {
			return strings.HasPrefix(tag, "strict") || tag == "include tag" || tag == "render tag"
		}) {
			continue
		}
		variables, err := liquid.Variables(json.RawMessage(cmp.Or(string(c.Data), "{}")))
		if err != nil {
			t.Fatal(err)
		}
		got := rendered(t, "body", c.Template, variables)
		refused := strings.HasPrefix(got, "parse: ") || strings.HasPrefix(got, "render: ")
		if c.Invalid {
			if !refused {
				t.Logf("%s: %q is %q, and must be refused", c.Name, c.Template, got)
			}
			continue
		}
		all++
		switch {
		case slices.Contains(append(c.Results, c.Result), got):
			same++
		case strings.Contains(got, "there is no variable"):
			unknown++ // the contract: that is a fault
		case refused:
			t.Logf("%s: %q with %s is refused: %s", c.Name, c.Template, c.Data, got)
		default:
			t.Errorf("%s: %q with %s is %q, want %q", c.Name, c.Template, c.Data, got, c.Result)
		}
	}
	t.Logf("%d of %d are the same, %d ask for variables that there are not", same, all, unknown)
	if share := float64(same+unknown) / float64(all); share < 0.97 {
		t.Errorf("%.3f are the same", share)
	}
}
