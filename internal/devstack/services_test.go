package devstack

import (
	"slices"
	"testing"
)

// TestWithoutServices: neither variable reaches development and tests, however often it is set; an empty one is not reported.
func TestWithoutServices(t *testing.T) {
	t.Parallel()
	environ := []string{"HOME=/root", "DATABASE_URL=postgres://h/one", "REDIS_URL=", "TEST_DATABASE_URL=x", "DATABASE_URL=postgres://h/two"}
	rest, left := WithoutServices(environ)
	if !slices.Equal(rest, []string{"HOME=/root", "TEST_DATABASE_URL=x"}) || !slices.Equal(left, []string{"DATABASE_URL"}) || len(environ) != 5 || environ[4] == "" {
		t.Errorf("rest %q, left %q of %q", rest, left, environ)
	}
	if rest, left := WithoutServices([]string{"REDIS_URL=r", "DATABASE_URL=d"}); len(rest) > 0 || !slices.Equal(left, []string{"DATABASE_URL", "REDIS_URL"}) {
		t.Errorf("rest %q, left %q", rest, left)
	}
}
