package ratelimit

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "draw docs/ratelimits.svg")

// TestPicture holds docs/ratelimits.svg to what the scripts decide: five algorithms, one lane each, under the same
// traffic.
func TestPicture(t *testing.T) {
	t.Parallel()
	const path = "../../docs/ratelimits.svg"
	got := draw(t, setup(t))
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	drawn, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(drawn) != got {
		t.Errorf("%s is out of date; check the change and run: go test ./internal/ratelimit -run Picture -update", path)
	}
}

// The picture's limit, and how long it goes on.
const (
	pictureLimit   = 6
	picturePer     = 10 * time.Second
	pictureSeconds = 45
)

// pictureTraffic returns the times of requests, in seconds: steadily, in a burst over the edge between two windows, not
// at all, in a burst again, and steadily but too fast.
func pictureTraffic() []float64 {
	var at []float64
	for n := range 6 {
		at = append(at, 1+2*float64(n))
	}
	for n := range 14 {
		at = append(at, 19.1+0.25*float64(n))
	}
	for n := range 8 {
		at = append(at, 33.5+0.25*float64(n))
	}
	for n := range 9 {
		at = append(at, 36+float64(n))
	}
	return at
}

// The geometry, in pixels.
const (
	left0     = 150
	perSecond = 15
	right0    = left0 + pictureSeconds*perSecond
	laneTop   = 92
	laneStep  = 50
)

func draw(t *testing.T, p *bundle) string {
	const lanes = 6
	bottom := laneTop + lanes*laneStep - 14
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 %d" width="960" height="%d" role="img" aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="13">`, bottom+52, bottom+52)
	line(`<title id="t">Five rate limits under the same traffic</title>`)
	line(`<desc id="d">Each lane shows which requests pass with 6 per 10 seconds. Over the edge between two windows the fixed window lets 11 pass within 4 seconds; the others do not.</desc>`)
	line(`<style>
text{fill:#1f2328}.soft{fill:#59636e}.yes{fill:#0969da}.no{fill:none;stroke:#d1242f;stroke-width:1.2}.over{fill:#d1242f;font-weight:600}.edge{stroke:#8c959f;stroke-dasharray:3 3}.base{stroke:#d1d9e0}.all{fill:#59636e}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.soft{fill:#9198a1}.yes{fill:#4493f8}.no{stroke:#f85149}.over{fill:#f85149}.edge{stroke:#656c76}.base{stroke:#3d444d}.all{fill:#9198a1}}
</style>`)
	line(`<text x="16" y="28" font-size="16" font-weight="600">6 per 10 s, five ways, the same requests</text>`)
	line(`<rect class="yes" x="16" y="44" width="3" height="16"/><text x="26" y="57">passes</text><path class="no" d="M84 50l6 6m0-6l-6 6"/><text x="96" y="57">refused</text>`)
	line(`<path class="edge" d="M160 44v16"/><text x="168" y="57">a fixed window begins</text><text class="soft" x="%d" y="57" text-anchor="end">most in 4 s</text><text class="soft" x="%d" y="57" text-anchor="end">in 10 s</text>`, right0+57, right0+115)
	for s := 0; s <= pictureSeconds; s += 5 {
		line(`<text class="soft" x="%d" y="%d" text-anchor="middle">%d s</text>`, left0+s*perSecond, bottom+20, s)
	}
	for _, phase := range []struct {
		at   float64
		text string
	}{{5, "steady"}, {20, "a burst over an edge"}, {29, "idle"}, {34.5, "a burst"}, {40.5, "steady, too fast"}} {
		line(`<text class="soft" x="%.0f" y="%d" text-anchor="middle">%s</text>`, left0+phase.at*perSecond, bottom+40, phase.text)
	}
	lane(line, 0, "requests", pictureTraffic(), nil, "all")
	for i, a := range Algorithms {
		passed, refused := p.sort(t, Limit{Algorithm: a, Limit: pictureLimit, Per: picturePer})
		if a == FixedWindow {
			for _, s := range edges(passed) {
				line(`<path class="edge" d="M%.2f 72V%d"/>`, left0+s*perSecond, bottom)
			}
		}
		lane(line, i+1, string(a), passed, refused, "yes")
	}
	line("</svg>")
	return b.String()
}

// sort sends the traffic through a limit.
func (p *bundle) sort(t *testing.T, l Limit) (passed, refused []float64) {
	t.Helper()
	begin := int64(minute) // a multiple of the window
	for _, s := range pictureTraffic() {
		p.at(t, begin+int64(s*1e6))
		if p.take(t, "picture", l, 1).Allowed {
			passed = append(passed, s)
		} else {
			refused = append(refused, s)
		}
	}
	return passed, refused
}

// edges returns the beginnings of fixed windows: each begins with the first use after the one before.
func edges(passed []float64) (at []float64) {
	for _, s := range passed {
		if len(at) == 0 || s >= at[len(at)-1]+picturePer.Seconds() {
			at = append(at, s)
		}
	}
	return at
}

// lane draws one line of marks, with its name and its fullest time span.
func lane(line func(string, ...any), i int, name string, passed, refused []float64, class string) {
	y := laneTop + i*laneStep + 18
	line(`<text x="16" y="%d" font-weight="600">%s</text><path class="base" d="M%d %dH%d"/>`, y-4, name, left0, y, right0)
	for _, s := range passed {
		line(`<rect class="%s" x="%.2f" y="%d" width="2.5" height="22"/>`, class, left0+s*perSecond-1.25, y-22)
	}
	for _, s := range refused {
		line(`<path class="no" d="M%.2f %dl4 4m0-4l-4 4"/>`, left0+s*perSecond-2, y+5)
	}
	if class == "all" {
		return
	}
	short, style := fullest(passed, 4), ""
	if short > 3*pictureLimit/2 {
		style = ` class="over"`
	}
	line(`<text%s x="%d" y="%d" text-anchor="end">%d</text>`, style, right0+57, y-4, short)
	line(`<text x="%d" y="%d" text-anchor="end">%d</text>`, right0+115, y-4, fullest(passed, picturePer.Seconds()))
}

// fullest returns the maximum number in any half-open span of the given seconds.
func fullest(at []float64, seconds float64) (most int) {
	for i, first := range at {
		n := 0
		for _, s := range at[i:] {
			if s-first < seconds {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
