package app

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sendquota/sendquota/internal/config"
)

// FuzzServerURLs holds that the addresses of Postgres and Redis are at fault, on
// one line that names the setting and shows nothing of a password; or that
// Redis can be opened with what was accepted.
func FuzzServerURLs(f *testing.F) {
	for _, seed := range [][2]string{
		{"postgres://u:p@h/db", "redis://h:1/3"}, {"postgresql://h", "rediss://u:p@h"}, {"mysql://h", "redis://u:p@a:1,b:2, c:3"}, {"postgres://", "a:1,redis://:p@b:2,c:3"},
		{"", "http://x"}, {"h", "redis://h?db=%zz"}, {"postgres://%", "redis://h:1?protocol=9"}, {"postgres://h", "redis://h:1/07"}, {"postgres://h", "redis://h:1?db=5"}, {"postgres://h", "a:1,b:2,"},
		{"postgres://h", "redis://h?0"}, {"postgres://h", "rediss://h?skip_verify=true"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, database, redis string) {
		if strings.ContainsAny(database+redis, "\x00") {
			return // no environment can hold it
		}
		cfg, err := config.Load([]string{"DATABASE_URL=" + database, "REDIS_URL=" + redis})
		if err != nil {
			if text := err.Error(); !strings.Contains(text, "DATABASE_URL") && !strings.Contains(text, "REDIS_URL") || len(redis) > 30 && strings.Contains(text, redis) {
				t.Errorf("%q, %q: %s", database, redis, text)
			}
			return
		}
		o, err := redisOptions(string(cfg.RedisURL), 0)
		if err != nil {
			t.Errorf("%q was accepted, but: %v", redis, err)
			return
		}
		if len(o.Addrs) == 0 || o.Addrs[0] == "" {
			t.Errorf("%q: %+v", redis, o)
		}
	})
}

// FuzzDatabasePassword holds that a password that stands in DATABASE_URL as it
// is, or percent-encoded, reaches the driver whole, or is refused untold.
func FuzzDatabasePassword(f *testing.F) {
	for _, seed := range []string{"p", "p@ss", "a/b", "12/34", "#", "?x=1", "100%", "%41", " é", "@h/d", "@/#?% &=+:", "p@h:1/db?user="} {
		f.Add(seed)
	}
	// A value of free text may hold an @: a password that looks like that is
	// one of the few things that can not be told from it.
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
