package liquid_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/liquid"
)

const (
	tooLong  = "render: message.body: it takes too long: over 100000 steps, which is about 50 ms"
	tooMuch  = "render: message.body: it makes over 262144 bytes"
	tooMany  = "render: message.body: it makes a list of over 10000 items"
	doubling = "{% assign s = 'xxxxxxxxxxxxxxxx' %}{% for i in (1..14) %}{% assign s = s | append: s %}{% endfor %}" // 256 KiB
	longText = "{% assign s = 'xxxxxxxxxxxxxxxx' %}{% for i in (1..13) %}{% assign s = s | append: s %}{% endfor %}" // 128 KiB
)

// hostile are templates that would run for ever, or grow without end.
var hostile = map[string]string{
	"loops":                strings.Repeat("{% for i in (1..1000000000) %}", 50) + strings.Repeat("{% endfor %}", 50),
	"loops over nothing":   strings.Repeat("{% for i in (1..100000) %}{% endfor %}", 50),
	"loops over all":       "{% for i in (-9223372036854775808..9223372036854775807) %}{% endfor %}",
	"loops with text":      "{% for i in (1..100000) %}0123456789012345678901234567890123456789{% endfor %}",
	"doubling":             "{% assign s = 'x' %}{% for i in (1..60) %}{% assign s = s | append: s %}{% endfor %}",
	"captures":             "{% assign s = 'x' %}{% for i in (1..60) %}{% capture s %}{{ s }}{{ s }}{% endcapture %}{% endfor %}",
	"outputs":              doubling + "{{ s }}{{ s }}",
	"outputs for ever":     longText + "{% for i in (1..100000) %}{% capture t %}{{ s }}{% endcapture %}{% endfor %}",
	"replace":              longText + "{{ s | replace: 'x', s }}",
	"replace nothing":      longText + "{{ s | replace: '', s }}",
	"join":                 longText + "{{ (1..10000) | join: s }}",
	"join of long ones":    longText + "{% assign l = s | split: ' ' %}{% for i in (1..13) %}{% assign l = l | concat: l %}{% endfor %}{{ l | join }}",
	"split":                longText + "{{ s | split: '' }}",
	"concat":               "{% assign l = 'a b' | split: ' ' %}{% for i in (1..60) %}{% assign l = l | concat: l %}{% endfor %}",
	"ranges":               "{{ (1..2000000000) | join }}",
	"ranges of all":        "{{ (-9223372036854775808..9223372036854775807) | reverse }}",
	"sort":                 "{% for i in (1..1000) %}{% assign l = (1..9999) | reverse | sort %}{% endfor %}",
	"uniq":                 "{% for i in (1..100000) %}{% assign l = (1..9999) | uniq %}{% endfor %}",
	"comparisons":          longText + "{% assign t = s | append: '' %}{% for i in (1..100000) %}{% if s == t %}{% endif %}{% endfor %}",
	"many comparisons":     longText + "{% assign t = s | append: '' %}{% for i in (1..100000) %}{% if " + strings.Repeat("s == t and ", 1000) + "true %}{% endif %}{% endfor %}",
	"contains":             longText + "{% for i in (1..100000) %}{% if s contains 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy' %}{% endif %}{% endfor %}",
	"comparisons of lists": longText + "{% assign l = s | split: '' %}{% assign l = (1..9999) | reverse %}{% assign k = (1..9999) | reverse %}{% for i in (1..100000) %}{% if l == k %}{% endif %}{% endfor %}",
	"upcase":               longText + "{% for i in (1..100000) %}{% assign t = s | upcase %}{% endfor %}",
	"json":                 longText + "{% for i in (1..100000) %}{% assign t = s | json %}{% endfor %}",
	"pads":                 "{% for i in (1..100000) %}{% assign t = 'now' | date: '%99d%99d%99d%99d%99d%99d%99d%99d%99d' %}{% endfor %}",
	"truncates":            longText + "{% for i in (1..100000) %}{% assign t = s | truncate: 1000000000 %}{% endfor %}",
	"dates":                "{% for i in (1..100000) %}{% assign t = 'no date at all' | date %}{% endfor %}",
	"words":                longText + "{% for i in (1..100000) %}{% assign t = s | truncatewords: 3 %}{% endfor %}",
	"decoding":             longText + "{% for i in (1..100000) %}{% assign t = s | url_encode | url_decode %}{% endfor %}",
	"cycles":               "{% for i in (1..1000000000) %}{% cycle '', '' %}{% endfor %}",
	"many tags":            "{% for i in (1..1000000000) %}" + strings.Repeat("{%if i%}{%endif%}", 3000) + "{% endfor %}",
}

// TestMessage_Bounded: what would run for ever or grow without end is ended: in time and memory that are a part of what the test has,
// and always in the same way.
func TestMessage_Bounded(t *testing.T) {
	for name, template := range hostile {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			got := rendered(t, "body", template, nil)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if got != tooLong && got != tooMuch && got != tooMany && name != "dates" {
				t.Errorf("%.300s", got)
			}
			if again := rendered(t, "body", template, nil); again != got {
				t.Errorf("%.100s, and then %.100s", got, again)
			}
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 256 {
				t.Errorf("%d MiB in all", mb)
			}
			t.Log(took)
		})
	}
}

// TestMessage_Yields: a rendering that takes long lets others have the processor again and again, and not only when the scheduler
// takes it away, after ten milliseconds.
func TestMessage_Yields(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var yields atomic.Int64
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				yields.Add(1)
				runtime.Gosched()
			}
		}
	}()
	if got := rendered(t, "body", hostile["cycles"], nil); got != tooLong {
		t.Errorf("%.300s", got)
	}
	if n := yields.Load(); n < 40 {
		t.Errorf("another goroutine had %d yields", n)
	}
}

// TestMessage_BoundedParsing: no template takes long to be read, whatever is in it.
func TestMessage_BoundedParsing(t *testing.T) {
	for name, piece := range map[string]string{
		"open outputs": "{{ {% x %}", "open tags": "{% {{ x }}", "opens": "{", "closes": "}}", "outputs": "{{a}}", "quotes": "{{'", "brackets": "{{((((", "raws": "{%raw%}{{{%endraw%}", "comments": "{%comment%}{%endcomment%}{{",
		"ifs": "{%if a%}", "elses": "{%if a%}{%else%}", "filters": "{{a|upcase}}", "blanks": "{{ \n\n\n\n\n", "dashes": "{%- -%}",
		"unterminated in raw": "{%raw%}" + strings.Repeat("{{", 99) + "{%endraw%}",
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(piece, liquid.MaxTemplate/len(piece))
			began := time.Now()
			rendered(t, "body", text, nil)
			t.Log(time.Since(began))
		})
	}
	for name, text := range map[string]string{
		"brackets": "{{ " + strings.Repeat("(", 30000) + "a" + strings.Repeat(")", 30000) + " }}", "ands": "{% if a" + strings.Repeat(" and a", 10000) + " %}{% endif %}",
		"pipes": "{{ a" + strings.Repeat("|upcase", 9000) + " }}", "index": "{{ a" + strings.Repeat("[a", 20000) + strings.Repeat("]", 20000) + " }}", "dots": "{{ a" + strings.Repeat(".a", 30000) + " }}",
		"nested": strings.Repeat("{%if a%}", 4000) + strings.Repeat("{%endif%}", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			got := rendered(t, "body", text, map[string]any{"a": "x"})
			t.Logf("%s %.100s", time.Since(began), got)
		})
	}
}

// FuzzMessage: whatever the template and the variables, nothing crashes, what is rendered is JSON of a bounded size, and twice the same;
// in HTML, no mark of a value comes through unless the template has a filter that says so.
func FuzzMessage(f *testing.F) {
	for name, template := range hostile {
		if len(template) < 1000 {
			f.Add(template, name)
		}
	}
	for _, seed := range []string{"{{ a | default: b }}", "{% if a contains 'x' %}{{ a | slice: 1, 2 }}{% endif %}", "{%- for x in a -%}{{x}}{%- endfor -%}", "{% case a %}{% when 1 %}{% endcase %}", "{{ a[0].b.size | date: '%Y' }}", "{{ 'x' | truncate: -5, 'y' }}"} {
		f.Add(seed, "x")
	}
	f.Fuzz(func(t *testing.T, template, value string) {
		message, _ := json.Marshal(map[string]any{"body": template, "html": template, "title": []string{template}})
		m, bad := liquid.Parse(message)
		if bad != nil {
			return
		}
		variables := map[string]any{"a": "<" + value, "b": []any{value, 1.5, nil, map[string]any{"a": value}}, "i": 3}
		got, err := m.Render(variables, december)
		if err != nil {
			return
		}
		var read struct{ HTML string }
		if err := json.Unmarshal(got, &read); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if len(got) > 7*256<<10 {
			t.Fatalf("%d bytes", len(got))
		}
		if again, _ := m.Render(variables, december); string(again) != string(got) {
			t.Fatalf("%s, and then %s", got, again)
		}
	})
}

// BenchmarkMessage renders the message of one recipient: of a campaign, 100,000 of them are to take a second or two.
func BenchmarkMessage(b *testing.B) {
	m, bad := liquid.Parse(json.RawMessage(`{"title":"Hi {{ first_name | default: 'there' }}","body":"{% if plan == 'gold' %}For you, {{ first_name | upcase }}: {{ discount }}%{% else %}Sale, {{ points | plus: 10 }} points{% endif %}","data":{"link":"https://example.com/?u={{ recipient | url_encode }}"}}`))
	if bad != nil {
		b.Fatal(bad)
	}
	for i := range b.N {
		text, err := m.Render(map[string]any{"first_name": "Aiko", "plan": "silver", "discount": "20", "points": "700", "recipient": fmt.Sprint("user-", i), "to": ""}, december)
		if err != nil || len(text) < 50 {
			b.Fatal(string(text), err)
		}
	}
}

// BenchmarkMessage_Bounded measures the worst templates until they are stopped.
func BenchmarkMessage_Bounded(b *testing.B) {
	for name, template := range hostile {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				rendered(b, "body", template, nil)
			}
		})
	}
}
