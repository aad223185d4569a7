package llmapp

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirhq/weir/internal/metric"
)

// In each logInterval, logLines lines of a message are logged, and the others are counted: an error
// of every call must not fill the disk.
const (
	logInterval = 10 * time.Second
	logLines    = 10
)

// suppressedLines lives as long as the process, so that it survives reloads.
var suppressedLines = metric.NewCounters("weir_suppressed_log_lines_total",
	"Lines that were not logged because many with the same message were, by message.", "message")

// messages are those that suppressedLines names: more than the code has.
var messages = metric.Bounded{Max: 500}

// BoundedLogger returns a logger that leaves out the lines beyond these bounds.
func BoundedLogger(logger *zap.Logger) *zap.Logger {
	count := zapcore.SamplerHook(func(entry zapcore.Entry, decision zapcore.SamplingDecision) {
		if decision&zapcore.LogDropped != 0 {
			suppressedLines.With(messages.Of(entry.Message)).Inc()
		}
	})
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, logInterval, logLines, 0, count)
	}))
}
