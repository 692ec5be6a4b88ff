package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const hush = "hush-0123456789abcdef"

func TestConfigDoesNotPrintItsSecrets(t *testing.T) {
	path := writeFile(t, "channels: {push: {type: webhook, url: 'https://h/${KEY}', secret: '${KEY}'}}")
	c, err := Load([]string{"DATABASE_URL=postgres://u:" + hush + "@h/db", "REDIS_URL=redis://:" + hush + "@h", "SENDQUOTA_CONFIG=" + path, "KEY=" + hush})
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Channels[0].Webhook.Secret) != hush || !strings.Contains(string(c.DatabaseURL), hush) {
		t.Fatal("the secrets themselves are lost")
	}
	printed(t, c, &c, c.Channels, c.Channels[0], c.DatabaseURL, &c.DatabaseURL)
}

// printed prints in every way, and looks for what must not be there.
func printed(t *testing.T, values ...any) {
	t.Helper()
	var out bytes.Buffer
	for _, v := range values {
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
	if !strings.Contains(out.String(), redacted) {
		t.Error("nothing shows that there is a secret")
	}
}

func TestExpansion(t *testing.T) {
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
		{"${GONE}" + hush, "", "channels.push.secret: the environment variable GONE is not set or empty"},
		{"${EMPTY}" + hush, "", "channels.push.secret: the environment variable EMPTY is not set or empty"},
		{"${hush-hush}", "", "channels.push.secret: has a ${…} that does not name an environment variable"},
		{"${SHORT}", "", "channels.push.secret: must be whsec_ and base64, or any other string of at least 16 bytes, which is used as it is"},
	} {
		c, faults := read("channels:\n  push: {type: webhook, url: 'http://h', secret: '"+tt.secret+"'}", "KEY="+hush, "NESTED=${KEY}", "EMPTY=", "SHORT=hush")
		switch got := string(c.Channels[0].Webhook.Secret); {
		case got != tt.want:
			t.Errorf("%s: got %q, want %q", tt.secret, got, tt.want)
		case tt.wrong == "" && faults != nil:
			t.Errorf("%s: %v", tt.secret, faults)
		case tt.wrong != "" && faults.Error() != "sendquota.yaml:2: "+tt.wrong:
			t.Errorf("%s: got fault %v, want %s", tt.secret, faults, tt.wrong)
		}
	}
}

func TestFaultsDoNotShowExpandedSecrets(t *testing.T) {
	for _, url := range []string{"${KEY}", "${KEY}://h", "ftp://${KEY}", "http://u:${KEY}@h", "http://h:${KEY}/"} {
		_, faults := read("channels: {push: {type: webhook, url: '"+url+"'}}", "KEY="+hush)
		if len(faults) != 1 || strings.Contains(faults.Error(), hush) {
			t.Errorf("%s: %v", url, faults)
		}
	}
}
