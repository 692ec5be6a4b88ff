package channel

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
)

// Log is a channel for trials: it writes a line for each push and delivers nothing. The line has ids only, never the
// message, the recipient or an address.
type Log struct {
	logger *slog.Logger
}

// NewLog returns a channel that writes to logger, at level info.
func NewLog(logger *slog.Logger) *Log { return &Log{logger: logger} }

// Check returns nil: a log refuses nothing.
func (l *Log) Check(string, json.RawMessage) invalid.FieldErrors { return nil }

// Send writes the line. It always delivers.
func (l *Log) Send(ctx context.Context, p push.Push, attempt int) Result {
	l.logger.LogAttrs(ctx, slog.LevelInfo, "push delivered to the log",
		slog.String("push", p.ID.String()),
		slog.String("channel", p.Channel),
		slog.Int("attempt", attempt))
	return Result{Outcome: push.Delivered, Handed: time.Now()}
}
