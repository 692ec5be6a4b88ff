package programs

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealthcheck_ReadyOrAlive: a program that is alive and not ready, at a wildcard address of the machine.
func TestHealthcheck_ReadyOrAlive(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"", "0.0.0.0", "127.0.0.1"} {
		t.Setenv("SENDQUOTA_ADDR", net.JoinHostPort(host, port))
		t.Setenv("SENDQUOTA_METRICS_ADDR", net.JoinHostPort(host, port))
		for name, check := range map[string]func(healthcheck) error{
			"api":    func(h healthcheck) error { return apiHealth{h}.Run() },
			"worker": func(h healthcheck) error { return workerHealth{h}.Run() },
		} {
			if err := check(healthcheck{}); err != nil {
				t.Errorf("%s at %q: %v", name, host, err)
			}
			if err := check(healthcheck{Ready: true}); err == nil || !strings.Contains(err.Error(), "/readyz answered 503") {
				t.Errorf("%s at %q is ready: %v", name, host, err)
			}
		}
	}
	t.Setenv("SENDQUOTA_METRICS_ADDR", "")
	if err := (workerHealth{}).Run(); err == nil || !strings.Contains(err.Error(), "SENDQUOTA_METRICS_ADDR is not set") {
		t.Errorf("a worker without an address: %v", err)
	}
}
