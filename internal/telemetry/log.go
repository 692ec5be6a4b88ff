// Package telemetry makes the service observable: its log and its metrics. Neither ever holds a message, a recipient,
// an address or a secret.
package telemetry

import (
	"io"
	"log/slog"
)

// NewLog returns a logger that writes one JSON object a line. What is less important than level is left out.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}
