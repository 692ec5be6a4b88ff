package main

import (
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestCheckConfig_Connect: only --connect connects to the servers, and reports the deficits of both.
func TestCheckConfig_Connect(t *testing.T) {
	url := testenv.Postgres(t)
	t.Setenv("DATABASE_URL", url)
	t.Setenv("REDIS_URL", testenv.Redis(t))
	if got := output(t, checkConfig{Connect: true}.Run); got != "no faults in the settings of the environment, and none in Postgres and Redis\n" {
		t.Errorf("printed %s", got)
	}
	testenv.Exec(t, url, `DELETE FROM sendquota_version WHERE version_id = 1`)
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1")
	if got := output(t, checkConfig{}.Run); got != "no faults in the settings of the environment\n" {
		t.Errorf("printed %s", got)
	}
	if err := (checkConfig{Connect: true}).Run(); err == nil || !strings.Contains(err.Error(), "sendquota migrate") || !strings.Contains(err.Error(), "Redis: ") {
		t.Errorf("with --connect: %v", err)
	}
}
