package queue

import (
	"testing"

	"github.com/sendquota/sendquota/internal/health"
)

// TestInspect_Version: a Redis before 6.2 is too old; a server that reports no version is new enough, and so is each Valkey, whatever
// version of Redis it reports.
func TestInspect_Version(t *testing.T) {
	t.Parallel()
	for info, old := range map[string]bool{
		"# Server\r\nredis_version:6.0.16\r\n": true, "redis_version:5.0.7\r\n": true, "redis_version:6.2.0\r\n": false,
		"redis_version:7.2.4\r\nmaxmemory_policy:noeviction\r\n": false, "redis_version:10.0.0\r\n": false, "redis_version:unknown\r\n": false, "": false,
		"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n": false, "redis_version:6.0.0\r\nvalkey_version:9.0.0\r\n": false,
	} {
		var lacks health.Deficits
		inspect(info, &lacks)
		if err := lacks.Err(); (err != nil) != old {
			t.Errorf("%q: %v", info, err)
		}
	}
}
