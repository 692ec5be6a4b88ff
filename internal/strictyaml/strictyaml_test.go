package strictyaml_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// garden is a small section with a setting of every kind.
type garden struct {
	Name  string
	Depth time.Duration
	Beds  []bed
	Pumps []pump
}

type bed struct{ Rows int }

type pump struct {
	Name, Type string
	Token      strictyaml.Secret
	Litres     int
}

func (g *garden) settings(t *strictyaml.Table) {
	t.String("name", "plain", "any text", &g.Name, nil)
	t.Duration("depth", strictyaml.Optional, "how deep", &g.Depth, time.Second, strictyaml.Forever)
	strictyaml.List(t, "beds", "[]", "the beds", &g.Beds, (*bed).settings)
	strictyaml.Map(t, "pumps", "{}", "the pumps", &g.Pumps, func(p *pump) *string { return &p.Name }, (*pump).settings)
}

func (b *bed) settings(t *strictyaml.Table) {
	t.Int("rows", strictyaml.Required, "1 to 9", &b.Rows, 1, 9)
	t.Unsupported("columns", "columns are not supported")
}

func (p *pump) settings(t *strictyaml.Table) {
	t.Switch("type", "hand or mains", &p.Type, strictyaml.Cases{{"hand", nil}, {"mains", p.mains}})
}

func (p *pump) mains(t *strictyaml.Table) {
	t.Secret("token", strictyaml.Optional, "opens the valve", &p.Token, func(s string) string {
		if len(s) < 4 {
			return "must have at least 4 bytes"
		}
		return ""
	})
	t.Int("litres", "5", "a minute", &p.Litres, 1, 100)
	t.Needs("token", "litres")
}

const hush = "hush-0123456789abcdef"

func read(text string, environ ...string) (garden, strictyaml.Errors) {
	var g garden
	errs := strictyaml.NewEnvironment(environ).ReadYAML("garden.yaml", []byte(text), g.settings)
	return g, errs
}

func TestReadYAML(t *testing.T) {
	got, errs := read("beds: [{rows: 1}, {rows: 2}]\npumps: {b: {type: mains, token: 'a-${T}', litres: 7}, a: {type: hand}}\n", "T=${X}")
	want := garden{Name: "plain", Beds: []bed{{1}, {2}}, Pumps: []pump{{"b", "mains", "a-${X}", 7}, {Name: "a", Type: "hand"}}}
	if diff := cmp.Diff(want, got); errs != nil || diff != "" {
		t.Errorf("%v\n(-want +got):\n%s", errs, diff)
	}
}

// TestReadYAML_Errors lists the errors of each file, all of them, with their lines.
func TestReadYAML_Errors(t *testing.T) {
	const keys = "name, depth, beds, pumps"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"null", "beds:\npumps:\n", []string{
			"1: beds: null: must be a list; write [] for none, or leave the key out for the default",
			"2: pumps: null: must be a mapping from names to pumps; leave the key out for the default",
		}},
		{"wrong shapes", "beds: {a: 1}\npumps: [a]\nname: 7\n", []string{
			"1: beds: a mapping: must be a list; write [] for none, or leave the key out for the default",
			"2: pumps: a list: must be a mapping from names to pumps",
			"3: name: 7: must be a string; put it in quotes",
		}},
		{"items", "beds:\n- five\n- {row: 1}\n- columns: 2\n  rows: 10\n", []string{
			"2: beds[0]: must be a mapping with the keys rows",
			"3: beds[1].rows: is required (1 to 9)",
			"3: beds[1].row: is not a setting; allowed: rows (did you mean rows?)",
			"4: beds[2].columns: columns are not supported",
			"5: beds[2].rows: 10: must be a whole number from 1 to 9",
		}},
		{"cases", "pumps:\n  a: {type: hand, token: " + hush + ", tokn: 1}\n  b: {type: wind, tokn: 1}\n  c: {type: mains, token: " + hush + ", tokn: 1}\n  d: https://h/" + hush + "\n", []string{
			"2: pumps.a.token: is not for type hand",
			"2: pumps.a.tokn: is not a setting; allowed: type",
			`3: pumps.b.type: "wind": must be one of hand, mains`,
			"4: pumps.c.tokn: is not a setting; allowed: type, token, litres (did you mean token?)",
			"4: pumps.c.litres: is required beside token",
			"5: pumps.d: https://…: must be a mapping with a type and the settings of that type",
		}},
		{"keys twice", "name: a\nname: b\npumps:\n  a: {type: hand}\n  \"a\": {type: hand}\nbeds: []\nbeds: []\n", []string{
			"2: name: is written twice, first in line 1",
			"5: pumps.a: is written twice, first in line 4",
			"7: beds: is written twice, first in line 6",
		}},
		{"strange keys", "\"a\\nb\": 1\n.names: 1\nDepth: 1\n<<: {depth: {}}\n? x\n: 1\n", []string{
			`1: "a\nb": is not a setting; allowed: ` + keys,
			`2: ".names": is not a setting; allowed: ` + keys,
			`3: Depth: is not a setting; allowed: ` + keys + ` (did you mean depth?)`,
			`4: "<<": is not a setting; allowed: ` + keys,
			`5: "?": is not a setting; allowed: ` + keys,
		}},
		{"anchors, aliases and tags", "depth: &x 1m\nname: *x\nbeds: [{rows: !!int 3}]\n", []string{
			"1: depth: an anchor: must be a duration of at least 1 second, written like 500ms, 90s, 24h or 30d",
			"2: name: an alias: must be a string; put it in quotes",
			"3: beds[0].rows: a tag: must be a whole number from 1 to 9",
		}},
		{"two documents", "beds: []\n---\nbeds: []\n", []string{"3: must be one YAML document; a second one begins here"}},
		{"a list", "- beds\n", []string{"1: a list: must be a mapping with the keys " + keys}},
		{"not YAML", "beds: []\npumps: {a: \"" + hush + "\n", []string{"2: is not YAML: could not find end character of double-quoted text"}},
		{"a tab", "beds:\n\trows: []\n", []string{"2: is not YAML: found character '\t' that cannot start any token"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, errs := read(tt.text)
			want := "garden.yaml:" + strings.Join(tt.want, "\ngarden.yaml:")
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(errs.Error(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(errs.Error(), hush) {
				t.Error("a secret in the errors")
			}
		})
	}
}

func TestSecret_Expansion(t *testing.T) {
	for _, tt := range []struct {
		secret string // as in the file, between single quotes
		want   string
		wrong  string
	}{
		{"${KEY}", hush, ""},
		{"${KEY}-${KEY}", hush + "-" + hush, ""},
		{"a$b$$c$KEY{}$-1234567", "a$b$$c$KEY{}$-1234567", ""},
		{"$${KEY}", "$" + hush, ""},
		{"${NESTED}-0123456789", "${KEY}-0123456789", ""},
		{"0123456789-${unclosed", "0123456789-${unclosed", ""},
		{"${GONE}" + hush, "", "pumps.a.token: the environment variable GONE is not set or empty"},
		{"${EMPTY}" + hush, "", "pumps.a.token: the environment variable EMPTY is not set or empty"},
		{"${hush-hush}", "", "pumps.a.token: has a ${…} that does not name an environment variable"},
		{"${SHORT}", "", "pumps.a.token: must have at least 4 bytes"},
	} {
		g, errs := read("pumps: {a: {type: mains, litres: 1, token: '"+tt.secret+"'}}", "KEY="+hush, "NESTED=${KEY}", "EMPTY=", "SHORT=abc")
		switch got := string(g.Pumps[0].Token); {
		case got != tt.want:
			t.Errorf("%s: got %q, want %q", tt.secret, got, tt.want)
		case tt.wrong == "" && errs != nil:
			t.Errorf("%s: %v", tt.secret, errs)
		case tt.wrong != "" && errs.Error() != "garden.yaml:1: "+tt.wrong:
			t.Errorf("%s: got %v, want %s", tt.secret, errs, tt.wrong)
		}
	}
}

func TestSecret_NotPrinted(t *testing.T) {
	var out bytes.Buffer
	g := garden{Pumps: []pump{{Token: hush}}}
	for _, v := range []any{g, &g, g.Pumps, g.Pumps[0].Token, &g.Pumps[0].Token} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "config", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "config", v)
		if err := json.NewEncoder(&out).Encode(v); err != nil {
			t.Error(err)
		}
	}
	for _, leak := range []string{hush, fmt.Sprintf("%x", hush), fmt.Sprintf("%X", hush), fmt.Sprintf("%d", []byte(hush))} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%s is in the output:\n%s", leak, &out)
		}
	}
	if !strings.Contains(out.String(), "[redacted]") {
		t.Error("nothing shows that there is a secret")
	}
}

func TestEnvironment(t *testing.T) {
	env := strictyaml.NewEnvironment([]string{"name=${X}", "depth=0s", "garden=1", "gardens=2", "garden_x=3", "garden_y=" + hush})
	var g garden
	errs := env.Read(g.settings, "name", "beds")
	errs = append(errs, env.Unknown("garden", g.settings, func(name, value string) bool { return name+value == "gardens2" })...)
	want := `beds: is required (the beds)
depth: "0s": must be a duration of at least 1 second, written like 500ms, 90s, 24h or 30d
garden: is not a setting; allowed: name, depth, beds, pumps
garden_x: is not a setting; allowed: name, depth, beds, pumps
garden_y: is not a setting; allowed: name, depth, beds, pumps`
	lines := strings.Split(errs.Error(), "\n")
	slices.Sort(lines)
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" || g.Name != "${X}" {
		t.Errorf("name %q (-want +got):\n%s", g.Name, diff)
	}
	if !errs.Concern("depth") || errs.Concern("dept") || errs.Concern("pumps") {
		t.Error("Concern does not find the setting")
	}
}

func TestDescribe(t *testing.T) {
	var g garden
	text, whole := strictyaml.Form{Kind: strictyaml.KindText}, func(least, most int) strictyaml.Form {
		return strictyaml.Form{Kind: strictyaml.KindInteger, Least: least, Most: most}
	}
	want := []strictyaml.Setting{
		{Name: "name", Default: "plain", Meaning: "any text", Form: text},
		{Name: "depth", Meaning: "how deep", Form: strictyaml.Form{Kind: strictyaml.KindDuration}},
		{Name: "beds", Default: "[]", Meaning: "the beds"},
		{Name: "beds[].rows", Default: "required", Meaning: "1 to 9", Form: whole(1, 9)},
		{Name: "pumps", Default: "{}", Meaning: "the pumps"},
		{Name: "pumps.NAME.type", Default: "required", Meaning: "hand or mains", Form: strictyaml.Form{Kind: strictyaml.KindWord, Words: []string{"hand", "mains"}}},
		{Name: "pumps.NAME.token", Meaning: "mains: opens the valve", Case: "mains", Form: strictyaml.Form{Kind: strictyaml.KindSecret}},
		{Name: "pumps.NAME.litres", Default: "5", Meaning: "mains: a minute", Case: "mains", Form: whole(1, 100)},
	}
	var got []strictyaml.Setting
	strictyaml.Describe(g.settings, func(s strictyaml.Setting) { got = append(got, s) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
