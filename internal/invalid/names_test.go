package invalid

import (
	"strings"
	"testing"
)

// TestDistance_Transpositions counts two neighbors that change places as one step, and else the usual ones.
func TestDistance_Transpositions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"from", "from", 0}, {"form", "from", 1}, {"wehbook", "webhook", 1}, {"emial", "email", 1},
		{"ab", "ba", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3}, {"resaon", "reason", 1}, {"urgnt", "urgent", 1}, {"abcdef", "badcfe", 3},
	} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q to %q is %d steps, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := Distance(tt.b, tt.a); got != tt.want {
			t.Errorf("%q to %q is %d steps, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

// TestNearest suggests a name that is similar, the most similar one, and none for another name.
func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"webhook", "sms", "email", "fcm", "apns", "log", "from", "reason", "urgent", "normal", "bulk"}
	for name, want := range map[string]string{
		"form": "from", "wehbook": "webhook", "emial": "email", "SMS": "sms", "smss": "sms", "loog": "log", "resaon": "reason", "urgnt": "urgent", "noraml": "normal",
		"fax": "", "": "", "x": "", "everything": "", strings.Repeat("webhook", 1000): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%.20q: %q, want %q", name, got, want)
		}
	}
	if got := UnknownName("channel", "emial", known); !strings.HasPrefix(got, "unknown channel; the nearest name is email. The channels are: webhook") {
		t.Error(got)
	}
	if got := UnknownName("channel", "email", known); got != "" {
		t.Error(got)
	}
}
