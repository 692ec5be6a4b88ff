package liquid_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/liquid"
)

// quoted is a text as JSON has it.
func quoted(text string) string {
	all, _ := json.Marshal(text) // a text always has a form
	return string(all)
}

// december is the time of sending in the tests.
func december() time.Time { return time.Date(2026, 12, 24, 20, 0, 0, 0, time.UTC) }

// rendered renders a template as the member of a message, and returns the result or the error.
func rendered(t testing.TB, member, template string, variables map[string]any) string {
	t.Helper()
	m, bad := liquid.Parse(json.RawMessage(`{` + quoted(member) + `:` + quoted(template) + `}`))
	if err := bad.Err(); err != nil {
		return "parse: " + err.Error()
	}
	text, err := m.Render(variables, december)
	if err != nil {
		return "render: " + err.Error()
	}
	var all map[string]string
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return all[member]
}

var aiko = map[string]any{
	"first_name": "Aiko", "cell": "", "nothing": nil, "points": json.Number("1234567"), "price": 7.5, "no": false, "e-mail": "a@b.c", "html": `<b>"&'`,
	"lines": "a\nb\r\nc", "tags": []any{"x", "y", "z"}, "user": map[string]any{"plan": "gold", "age": json.Number("41")}, "text": "7",
}

// TestMessage_Render: what templates make of variables.
func TestMessage_Render(t *testing.T) {
	for template, want := range map[string]string{
		"":          "",
		"plain { %": "plain { %",
		"Hi {{ first_name | default: 'there' }}!": "Hi Aiko!",
		"Hi {{ nick | default: 'there' }}!":       "Hi there!",
		"{{ cell | default: \"there\" }}":         "there",
		"{{ nothing | default: 'there' }}":        "there",
		"{{no | default: 1}}":                     "1",
		"[{{ cell }}{{ nothing }}]":               "[]",
		"{{ e-mail }} {{ points }} {{ price }}":   "a@b.c 1234567 7.5",
		"{{ points | plus: 1 }} {{ 3 | times: 2 }} {{ 10 | divided_by: 4 }} {{ 2.5 | round }} {{ 1e3 }}": "parse: message.body: line 1: 1e3 is not an expression",
		"{{ points | plus: 1 }} {{ 3 | times: 2 }} {{ 10 | divided_by: 4 }} {{ 2.567 | round: 1 }}":      "1234568 6 2 2.6",
		"{{ text | plus: 1 }}": "8",
		"{{ user.plan | upcase }} {{ user['age'] }} {{ tags[1] }} {{ tags.size }} {{ tags.first }}":                            "GOLD 41 y 3 x",
		"{% if first_name == 'Aiko' and points > 10 %}yes{% else %}no{% endif %}":                                              "yes",
		"{% if plan %}{{ plan }}{% elsif user.plan == 'gold' %}g{% endif %}":                                                   "g",
		"{% if plan and plan == 'gold' %}a{% endif %}{% unless plan %}b{% endunless %}":                                        "b",
		"{% if false or true and false %}a{% else %}b{% endif %}":                                                              "b",
		"{% case user.plan %}{% when 'silver', 'gold' %}metal{% else %}none{% endcase %}":                                      "metal",
		"{% for x in tags %}{{ forloop.index }}{{ x }}{% unless forloop.last %},{% endunless %}{% endfor %}":                   "1x,2y,3z",
		"{% for i in (1..10) reversed limit:3 offset:2 %}{{ i }}{% endfor %}":                                                  "543",
		"{% for i in (1..9) %}{% if i == 3 %}{% continue %}{% elsif i > 5 %}{% break %}{% endif %}{{ i }}{% endfor %}":         "1245",
		"{% for i in (2..1) %}{{ i }}{% else %}none{% endfor %}":                                                               "none",
		"{% for i in (1..4) %}{% cycle 'a', 'b' %}{% endfor %}":                                                                "abab",
		"{% for pair in user %}{{ pair[0] }}={{ pair[1] }};{% endfor %}":                                                       "age=41;plan=gold;",
		"{% assign n = first_name | downcase %}{{ n }}{% capture c %}<{{ n }}>{% endcapture %}{{ c }}":                         "aiko<aiko>",
		"a  {%- if true -%}  b  {%- endif -%}  c{{- ' d ' -}} e":                                                               "abc d e",
		"{% raw %}{{ x }}{% endraw %}{% comment %}{{ x }}{% if %}{% endcomment %}.":                                            "{{ x }}.",
		"{{ 'a,b,c' | split: ',' | join: '-' }} {{ tags | reverse | join: '' }} {{ tags | concat: tags | uniq | size }}":       "a-b-c zyx 3",
		"{{ 'Ünïcödé' | slice: 1, 3 }} {{ 'abc' | slice: 9 }} {{ 'abc' | slice: -2, 9 }} {{ 'ünder' | capitalize }}":           "nïc  bc Ünder",
		"{{ 'ünïcödé text' | truncate: 7 }} {{ 'one two three' | truncatewords: 2 }} {{ 'abc' | truncate: 2000 }}":             "ünïc... one two... abc",
		"{{ '2026-11-27' | date: '%d.%m.%Y' }} {{ 'a.b' | replace: '.', '-' }} {{ '<p>x</p>' | strip_html }} {{ html | json}}": `27.11.2026 a-b x "\u003cb\u003e\"\u0026'"`,
		"{{ html }} {{ html | escape }}": `<b>"&' &lt;b&gt;&quot;&amp;&#39;`,
		"{{ lines }}":                    "a\nb\r\nc",
		"{{ tags }}{{ (1..3) }}":         "xyz1..3",
		"{{ 'x' | url_decode | append: first_name | prepend: 'p' }}": "pxAiko",
		"{{ '%ff' | url_decode }}":                                   "\uFFFD",

		// An unknown variable is named in the error.
		"{{ nick }}":                                       "render: message.body: there is no variable nick; the filter default gives a value for that",
		"{{ nick | upcase | default: 'x' }}":               "render: message.body: there is no variable nick; the filter default gives a value for that",
		"{{ cell | default: other }}":                      "render: message.body: there is no variable other; the filter default gives a value for that",
		"{{ first_name | default: other }}":                "Aiko",
		"{{ user.nick }}":                                  "render: message.body: there is no variable user.nick; the filter default gives a value for that",
		"{{ user.nick | upcase }}":                         "render: message.body: there is no variable user.nick; the filter default gives a value for that",
		"{{ user.nick | default: 'x' | upcase }}":          "X",
		"{% if plan == 'gold' %}{% endif %}":               "render: message.body: there is no variable plan; the filter default gives a value for that",
		"{% for x in xs %}{% endfor %}":                    "render: message.body: there is no variable xs; the filter default gives a value for that",
		"{% for i in (1..n) %}{% endfor %}":                "render: message.body: there is no variable n; the filter default gives a value for that",
		"{% assign x = y %}":                               "render: message.body: there is no variable y; the filter default gives a value for that",
		"{% case y %}{% when 1 %}{% endcase %}":            "render: message.body: there is no variable y; the filter default gives a value for that",
		"{% assign x = y | default: 'z' %}{{ x }}":         "z",
		"{% for x in xs %}{% endfor %}{{ x | default: 1}}": "render: message.body: there is no variable xs; the filter default gives a value for that",
		"{% for x in tags %}{% endfor %}{{ x }}":           "render: message.body: there is no variable x; the filter default gives a value for that",
		"{{ forloop.index }}":                              "render: message.body: there is no variable forloop; the filter default gives a value for that",
		"{{ first_name | divided_by: 2 }}":                 "render: message.body: the filter divided_by of first_name: a text that is no number does not count",
		"{{ 1 | divided_by: 0 }}":                          "render: message.body: the filter divided_by: a number is divided by 0",
		"{{ first_name | date: '%999999999d' }}":           "render: message.body: the filter date of first_name: the format is too wide",
		"{% for i in (1..first_name) %}{% endfor %}":       `render: message.body: the end of a range must be a whole number, and is a text that is no number`,
		"{% break %}":                                      "render: message.body: break must stand in a for",

		// Texts that are no templates.
		"a\n{{ b":                                "parse: message.body: line 2: {{ is not closed by }}",
		"{% if a %}":                             "parse: message.body: line 1: if has no endif",
		"{% endif %}":                            "x",
		"{% if a | %}{% endif %}":                "parse: message.body: line 1: a | is not an expression",
		"{{ a | shout }}":                        "parse: message.body: line 1: there is no filter shout",
		"{{ }}":                                  "parse: message.body: line 1: {{ }} is not Liquid",
		"{{}}":                                   "parse: message.body: line 1: {{ }} is not Liquid",
		"{{ a\nb }}":                             "parse: message.body: line 1: a b is not an expression",
		"{% %}":                                  "parse: message.body: line 1: {% %} is not Liquid",
		"{{ 99999999999999999999 }}":             "parse: message.body: line 1: the number 99999999999999999999 is too large",
		"{% include 'a' %}":                      "parse: message.body: line 1: include is not supported: a message has no other templates",
		"{%render 'a'%}":                         "parse: message.body: line 1: render is not supported: a message has no other templates",
		"{% if x %}{% include 'a' %}{% endif %}": "parse: message.body: line 1: include is not supported: a message has no other templates",
		"{% layout 'a' %}":                       "parse: message.body: line 1: there is no tag layout",
		"{% raw %}{{":                            "parse: message.body: line 1: raw has no endraw",
		strings.Repeat("{% if true %}", 101) + strings.Repeat("{% endif %}", 101): "parse: message.body: blocks must not be nested deeper than 100 levels",
	} {
		got := rendered(t, "body", template, aiko)
		if template == "{% endif %}" {
			if !strings.HasPrefix(got, "parse: message.body: ") {
				t.Errorf("%s: %s", template, got)
			}
			continue
		}
		if got != want {
			t.Errorf("%.200s: %q, want %q", template, got, want)
		}
	}
}

// TestMessage_Places: each string is a template, in objects and arrays, and the rest stays as it was written.
func TestMessage_Places(t *testing.T) {
	const text = ` {"title":"{{n}}", "{{n}}" : 1.50, "data":{"list":[1,"{{ n }}",{"a\"b":"{{n}}\u00e9"}],"x":null},"body":"q\"{{n}}\\"} `
	m, bad := liquid.Parse(json.RawMessage(text))
	if err := bad.Err(); err != nil {
		t.Fatal(err)
	}
	got, err := m.Render(map[string]any{"n": "<\"\n\u2028>"}, december)
	want := ` {"title":"<\"  >", "{{n}}" : 1.50, "data":{"list":[1,"<\"\n` + "\u2028" + `>",{"a\"b":"<\"\n` + "\u2028" + `>é"}],"x":null},"body":"q\"<\"\n` + "\u2028" + `>\\"} `
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for field, want := range map[string]bool{"message": true, "message.data": true, "message.data.list": true, "message.data.list[1]": true, "message.data.list[0]": false, "message.x": false} {
		if liquid.Templated(json.RawMessage(text), field) != want {
			t.Errorf("%s", field)
		}
	}
	_, bad = liquid.Parse(json.RawMessage(`{"title":"{{ a","data":{"list":[1,"{{ }}",{"a":"{% x %}"}]}}`))
	if diff := cmp.Diff([]string{"message.title: line 1: {{ is not closed by }}", "message.data.list[1]: line 1: {{ }} is not Liquid", "message.data.list[2].a: line 1: there is no tag x"}, strings.Split(bad.Error(), "; ")); diff != "" {
		t.Error(diff)
	}
	if _, bad := liquid.Parse(json.RawMessage(`{"a":` + quoted(strings.Repeat("x", 40<<10)+"{{ a }}") + `,"b":` + quoted("{{ a }}"+strings.Repeat("x", 30<<10)) + `}`)); bad.Error() != "message: must have templates of at most 65536 bytes in all, has 71694" {
		t.Error(bad)
	}
}

// TestMessage_HTML checks that values in HTML are escaped exactly once, so that a name cannot inject markup.
func TestMessage_HTML(t *testing.T) {
	const is = `&lt;b&gt;&quot;&amp;&#39;`
	for template, want := range map[string]string{
		"<p>{{ html }}</p>":                                                     "<p>" + is + "</p>",
		"{{ html | raw }}":                                                      `<b>"&'`,
		"{{ html | escape }} {{ html | escape_once }}":                          is + " " + is,
		"{{ html | escape | append: html }}":                                    `&amp;lt;b&amp;gt;&amp;quot;&amp;amp;&amp;#39;` + is,
		"{{ html | raw | append: html }}":                                       is + is,
		"{{ lines | newline_to_br }} {{ html | newline_to_br }}":                "a<br />\nb<br />\nc " + is,
		"{% capture c %}<i>{{ html }}</i>{% endcapture %}{{ c }}":               "<i>" + is + "</i>",
		"{% capture c %}{{ html }}{% endcapture %}{% assign c = html %}{{ c }}": is,
		"{% capture x %}{% endcapture %}{% for x in list %}{{ x }}{% endfor %}": is,
		"{% assign c = html %}{{ c }}{{ list }}":                                is + is,
		"{% if false %}{% capture html %}{% endcapture %}{% endif %}{{ html }}": is,
	} {
		if got := rendered(t, "html", template, map[string]any{"html": `<b>"&'`, "lines": "a\nb\r\nc", "list": []any{`<b>"&'`}}); got != want {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
	if got := rendered(t, "title", "a\n{{ x }}", map[string]any{"x": "b\r\nBcc: c\rd\u0085e"}); got != "a b Bcc: c d e" {
		t.Errorf("%q", got)
	}
}

// TestMessage_Together: one message is rendered for many at the same time, and nothing of one is seen by another.
func TestMessage_Together(t *testing.T) {
	m, bad := liquid.Parse(json.RawMessage(`{"title":"{% assign x = name %}{{ x }}","body":"{{ x | default: 'none' }}{% for i in (1..20) %}{{ name }}{% endfor %}"}`))
	if err := bad.Err(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 200 {
				name := fmt.Sprint(g, "-", i)
				got, err := m.Render(map[string]any{"name": name}, december)
				if want := `{"title":"` + name + `","body":"none` + strings.Repeat(name, 20) + `"}`; err != nil || string(got) != want {
					t.Errorf("%s, %v, want %s", got, err, want)
				}
			}
		})
	}
	all.Wait()
}
