package config

import (
	"strings"
	"testing"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		variable string
		wrong    string // part of the error; empty: none
	}{
		{"DATABASE_URL=postgres://a:1,b:2/db?sslmode=disable", ""},
		{"DATABASE_URL=postgresql:///db?host=/run/postgresql", ""},
		{"DATABASE_URL=", ""}, // as if not set
		{"DATABASE_URL=mysql://u:topsecret@h/db", "DATABASE_URL: mysql://…: must begin with postgres:// or postgresql://"},
		{"DATABASE_URL=host=h password=topsecret", "DATABASE_URL: must begin with"},
		{"DATABASE_URL=postgres://u:topsecret/@#?% @h/db", ""},
		{"DATABASE_URL=postgres://u:12/topsecret@h", "DATABASE_URL: postgres://…: must look like postgres://user:password@host:port/database?parameter=value, with one meaning only: write @ as %40, / as %2F"},

		{"REDIS_URL=redis://localhost:6379", ""},
		{"REDIS_URL=rediss://u:p@h/3", ""},
		{"REDIS_URL=a:1,b:2,c:3", ""},
		{"REDIS_URL=redis://:topsecret@a:1,b:2", ""},
		{"REDIS_URL=rediss://a:1,rediss://b:2/0", ""},
		{"REDIS_URL=a:1,rediss://b:2", "must be host:port for every cluster node"},
		{"REDIS_URL=a:1,redis://b:2/1", "a cluster has database 0 only"},
		{"REDIS_URL=a:1,", "for every cluster node"},
		{"REDIS_URL=a:1,:2", "for every cluster node"},
		{"REDIS_URL=localhost:6379", "must be redis://["},
		{"REDIS_URL=redis://:topsecret@h/one", "redis://…: must be redis://["},
		{"REDIS_URL=redis://:top#topsecret@h", "redis://…: must be"},
		{"REDIS_URL=http://h", "http://…: must be"},

		{"SENDQUOTA_ADDR=0.0.0.0:0", ""},
		{"SENDQUOTA_ADDR=8080", `SENDQUOTA_ADDR: "8080": must be host:port`},
		{"SENDQUOTA_ADDR=h:65536", "must be host:port"},
		{"SENDQUOTA_API=https://api.example.com", ""},
		{"SENDQUOTA_API=api.example.com", "SENDQUOTA_API: \"api.example.com\": must be an absolute URL"},
		{"SENDQUOTA_API_KEY=sq_topsecret", ""},
		{"SENDQUOTA_METRICS_ADDR=h:http", "must be host:port"},
		{"SENDQUOTA_SEAL_KEY=" + strings.Repeat("A", 43) + "=", ""},
		{"SENDQUOTA_SEAL_KEY=topsecret", "SENDQUOTA_SEAL_KEY: must be 32 bytes in base64, as `openssl rand -base64 32` makes them"},
		{"SENDQUOTA_SEAL_KEY_PREVIOUS=" + strings.Repeat("A", 43) + "=", "SENDQUOTA_SEAL_KEY: is required beside SENDQUOTA_SEAL_KEY_PREVIOUS"},
		{"SENDQUOTA_SEAL_KEY_PREVIOUS=topsecret", "SENDQUOTA_SEAL_KEY_PREVIOUS: must be 32 bytes"},
		{"SENDQUOTA_LOG_LEVEL=debug", ""},
		{"SENDQUOTA_LOG_LEVEL=INFO", `"INFO": must be one of debug, info, warn, error`},
		{"SENDQUOTA_DATABASE_URL=topsecret", "SENDQUOTA_DATABASE_URL: is not a setting; allowed: DATABASE_URL,"},
		{"SENDQUOTA_LOGLEVEL=info", "(did you mean SENDQUOTA_LOG_LEVEL?)"},
		{"SENDQUOTAS=1", ""}, // not ours
		{"garbage", ""},
	} {
		_, err := LoadDev([]string{tt.variable})
		switch {
		case tt.wrong == "" && err != nil:
			t.Errorf("%s: %v", tt.variable, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s: got %v, want %s", tt.variable, err, tt.wrong)
		case err != nil && (strings.Contains(err.Error(), "topsecret") || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: a secret, or more than one error: %v", tt.variable, err)
		}
	}
}

// TestEnvironment_ServiceLinks: the variables that the kubelet makes for the
// Services sendquota and sendquota-worker, and what only looks like them.
func TestEnvironment_ServiceLinks(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"SENDQUOTA", "SENDQUOTA_WORKER", "SENDQUOTA_API_2"} {
		links := []string{
			service + "_SERVICE_HOST=10.96.0.7", service + "_SERVICE_PORT=8080", service + "_SERVICE_PORT_HTTP=8080", service + "_SERVICE_PORT_GRPC_2=8081",
			service + "_PORT=tcp://10.96.0.7:8080", service + "_PORT_8080_TCP=tcp://10.96.0.7:8080", service + "_PORT_8080_TCP_PROTO=tcp",
			service + "_PORT_8080_TCP_PORT=8080", service + "_PORT_8080_TCP_ADDR=10.96.0.7", service + "_PORT_53_UDP=udp://[fd00::7]:53", service + "_PORT_53_UDP_ADDR=fd00::7",
		}
		if _, err := LoadDev(links); err != nil {
			t.Errorf("%s: %v", service, err)
		}
		if _, err := LoadDev(append(links, "SENDQUOTA_LOGLEVEL=info")); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "SENDQUOTA_LOGLEVEL") {
			t.Errorf("with a misspelt setting beside them: %v", err)
		}
	}
	for _, variable := range []string{
		"SENDQUOTA_PORT=8080", "SENDQUOTA_METRICS_PORT=9090", "SENDQUOTA_PORT=", "SENDQUOTA_SERVICE=x", "SENDQUOTA_HOST=10.96.0.7",
		"SENDQUOTA_SERVICE_HOSTS=x", "SENDQUOTA_PORT_8080=1", "SENDQUOTA_PORT_HTTP_TCP=1", "SENDQUOTA_ADDRESS=tcp://10.96.0.7:8080", "SENDQUOTA_DATABASE_URL=tcp://10.96.0.7",
	} {
		if _, err := LoadDev([]string{variable}); err == nil || !strings.Contains(err.Error(), "is not a setting") {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

func TestEnvironment_NoFarSuggestion(t *testing.T) {
	t.Parallel()
	_, err := LoadDev([]string{"SENDQUOTA_FLOWERS=1"})
	if err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("got %v", err)
	}
}
