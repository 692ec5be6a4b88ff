package build

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type composeService struct {
	Image       string
	Build       any
	Environment map[string]string
	Ports       []string
	Healthcheck struct{ Test []string }
	MemLimit    string `yaml:"mem_limit"`
	Logging     struct{ Options map[string]string }
}

// TestCompose: one service builds the image; services that stay up have a health check and bounds; servers are not published; the
// file has no password and no key.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]composeService }
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.AllowDuplicateMapKey()); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) != 5 {
		t.Errorf("%d services", len(file.Services))
	}
	built := map[string]int{}
	for name, s := range file.Services {
		if s.Build != nil {
			built[s.Image]++
		}
		if name != "migrate" && len(s.Healthcheck.Test) == 0 {
			t.Errorf("%s has no health check", name)
		}
		if s.MemLimit == "" || s.Logging.Options["max-size"] == "" {
			t.Errorf("%s has no limit of memory, or of its log", name)
		}
		if (name == "postgres" || name == "redis") != (len(s.Ports) == 0) && name != "migrate" {
			t.Errorf("%s publishes %v", name, s.Ports)
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s is open to others: %s", name, port)
			}
		}
		if (name == "api" || name == "worker") && !strings.HasPrefix(s.Environment["SENDQUOTA_SEAL_KEY"], "${SENDQUOTA_SEAL_KEY:?") {
			t.Errorf("%s: the key that seals secrets is %s", name, s.Environment["SENDQUOTA_SEAL_KEY"])
		}
		for variable, value := range s.Environment {
			if strings.HasSuffix(variable, "PASSWORD") && !strings.HasPrefix(value, "${POSTGRES_PASSWORD:?") {
				t.Errorf("%s: %s is %s", name, variable, value)
			}
		}
	}
	if built["sendquota"] != 1 {
		t.Errorf("the image is built %d times", built["sendquota"])
	}
}
