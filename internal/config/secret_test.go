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

func TestConfig_PrintsNoSecrets(t *testing.T) {
	t.Parallel()
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

// printed returns a value as every way of printing shows it.
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
	if !strings.Contains(out.String(), "[redacted]") {
		t.Error("nothing shows that there is a secret")
	}
}

func TestErrors_ShowNoSecrets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"${KEY}", "${KEY}://h", "ftp://${KEY}", "http://u:${KEY}@h", "http://h:${KEY}/"} {
		_, errs := read("channels: {push: {type: webhook, url: '"+url+"'}}", "KEY="+hush)
		if len(errs) != 1 || strings.Contains(errs.Error(), hush) {
			t.Errorf("%s: %v", url, errs)
		}
	}
}
