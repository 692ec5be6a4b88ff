package queue

import (
	"testing"

	"github.com/sendquota/sendquota/internal/health"
)

// TestInspect_Version: a Redis before 6.2 is too old; a server that reports no version is new enough.
func TestInspect_Version(t *testing.T) {
	t.Parallel()
	for info, old := range map[string]bool{
		"# Server\r\nredis_version:6.0.16\r\n": true, "redis_version:5.0.7\r\n": true, "redis_version:6.2.0\r\n": false,
		"redis_version:7.2.4\r\nmaxmemory_policy:noeviction\r\n": false, "redis_version:10.0.0\r\n": false, "redis_version:unknown\r\n": false, "": false,
	} {
		var lacks health.Unsuited
		inspect(info, &lacks)
		if err := lacks.Err(); (err != nil) != old {
			t.Errorf("%q: %v", info, err)
		}
	}
}
