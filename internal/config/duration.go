package config

import (
	"time"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// ParseDuration reads a duration as the settings have it, such as 500ms, 24h or 30d. It stands here so that the tool needs no other
// package.
func ParseDuration(text string) (time.Duration, error) { return strictyaml.ParseDuration(text) }

// Spoken writes a duration as people say it, such as 1 minute or 30 days.
func Spoken(d time.Duration) string { return strictyaml.Spoken(d) }
