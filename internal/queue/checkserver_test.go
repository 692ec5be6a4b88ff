package queue_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestSuits reports all defects of a Redis without TIME, or with eviction, and none if the user may not ask.
func TestSuits(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	admin := client(t, server.URL)
	as := func(rules ...any) *queue.Queue {
		name := uuid.NewString()
		testenv.Check(t, admin.Do(t.Context(), append([]any{"ACL", "SETUSER", name, "on", ">x", "~*", "&*", "+@all"}, rules...)...).Err())
		u, err := url.Parse(server.URL)
		testenv.Check(t, err)
		u.User = url.UserPassword(name, "x")
		return queue.New(client(t, u.String()), 2, nil)
	}
	all, noTime, noInfo := as(), as("-time"), as("-info")
	for _, row := range []struct {
		name, policy string
		q            *queue.Queue
		state, says  string // empty: no defect
	}{
		{"all is well", "noeviction", all, "", ""},
		{"no TIME", "noeviction", noTime, "no_time", "refuses the command TIME"},
		{"no INFO", "allkeys-lru", noInfo, "", ""},
		{"eviction", "volatile-ttl", all, "evicts", "volatile-ttl"},
		{"both", "volatile-ttl", noTime, "no_time", "volatile-ttl"},
	} {
		testenv.Check(t, admin.ConfigSet(t.Context(), "maxmemory-policy", row.policy).Err())
		err := row.q.CheckServer(t.Context())
		var unsuitable *health.Deficits
		switch errors.As(err, &unsuitable); {
		case row.state == "" && err != nil:
			t.Errorf("%s: %v", row.name, err)
		case row.state != "" && (unsuitable == nil || unsuitable.State() != row.state || !strings.Contains(unsuitable.Detail(), row.says)):
			t.Errorf("%s: %v, want %s", row.name, err, row.state)
		}
	}
	testenv.Check(t, server.Kill())
	if err := all.CheckServer(t.Context()); err == nil || errors.As(err, new(*health.Deficits)) {
		t.Errorf("a Redis that is gone: %v", err)
	}
}
