package pg_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sendquota/sendquota/internal/config"
)

// FuzzDatabasePassword checks that a password in DATABASE_URL, written as it is or percent-encoded, reaches the driver
// whole, or is rejected without being shown.
func FuzzDatabasePassword(f *testing.F) {
	for _, seed := range []string{"p", "p@ss", "a/b", "12/34", "#", "?x=1", "100%", "%41", " é", "@h/d", "@/#?% &=+:", "p@h:1/db?user="} {
		f.Add(seed)
	}
	// A value of free text may contain an @: a password that looks like such a value is one of the few that cannot be
	// distinguished from it.
	freeText := regexp.MustCompile(`[?&](application_name|fallback_application_name|options|user|password)=`)
	f.Fuzz(func(t *testing.T, password string) {
		if password == "" || strings.ContainsAny(password, "\x00") || freeText.MatchString(password) {
			return
		}
		decoded, err := url.PathUnescape(password)
		if err != nil {
			decoded = password
		}
		encoded := strings.ReplaceAll(url.QueryEscape(password), "+", "%20")
		for _, form := range []struct{ written, want string }{{password, decoded}, {encoded, password}} {
			cfg, err := config.Load([]string{"REDIS_URL=redis://h", "DATABASE_URL=postgres://user:" + form.written + "@db.example:5433/name?sslmode=disable"})
			if err != nil {
				if text := err.Error(); form.written == encoded || len(password) > 3 && strings.Contains(strings.ReplaceAll(text, "postgres://user:password@host:port/database?parameter=value", ""), password) {
					t.Errorf("%q: %s", form.written, text)
				}
				continue
			}
			got, err := pgconn.ParseConfig(string(cfg.DatabaseURL))
			if err != nil || got.Password != form.want || got.User != "user" || got.Host != "db.example" || got.Port != 5433 || got.Database != "name" {
				t.Errorf("%q: %+v, %v", form.written, got, err)
			}
		}
	})
}
