package app

import (
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/config"
)

// FuzzServerURLs: an invalid URL of Postgres or Redis is one line of error that
// names the setting and shows no part of a password. Redis can be opened with
// every accepted URL.
func FuzzServerURLs(f *testing.F) {
	for _, seed := range [][2]string{
		{"postgres://u:p@h/db", "redis://h:1/3"}, {"postgresql://h", "rediss://u:p@h"}, {"mysql://h", "redis://u:p@a:1,b:2, c:3"}, {"postgres://", "a:1,redis://:p@b:2,c:3"},
		{"", "http://x"}, {"h", "redis://h?db=%zz"}, {"postgres://%", "redis://h:1?protocol=9"}, {"postgres://h", "redis://h:1/07"}, {"postgres://h", "redis://h:1?db=5"}, {"postgres://h", "a:1,b:2,"},
		{"postgres://h", "redis://h?0"}, {"postgres://h", "rediss://h?skip_verify=true"}, {"postgres://h", "redis-cluster://u:p@h:1,[::1]"},
		{"postgres://h", "rediss-sentinel://u:p@a,b:2/3?master=m&sentinel_password=q&skip_verify=true"}, {"postgres://h", "redis-sentinel://a?master=m&master=n"},
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
		o, err := redisOptions(cfg.RedisURL, 0)
		if err != nil {
			t.Errorf("%q was accepted, but: %v", redis, err)
			return
		}
		if len(o.Addrs) == 0 || o.Addrs[0] == "" {
			t.Errorf("%q: %+v", redis, o)
		}
	})
}
