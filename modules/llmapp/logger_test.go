package llmapp

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirhq/weir/internal/metric"
)

// What goes wrong with every call must not fill the disk.
func TestLogLinesAreBounded(t *testing.T) {
	core, lines := observer.New(zapcore.InfoLevel)
	logger := BoundedLogger(zap.New(core))
	before := testutil.ToFloat64(suppressedLines.With(metric.Constant("it fails")))
	for range 1000 {
		logger.Error("it fails")
	}
	logger.Error("something else")
	if n := lines.FilterMessage("it fails").Len(); n != logLines {
		t.Errorf("%d lines, want %d", n, logLines)
	}
	if n := testutil.ToFloat64(suppressedLines.With(metric.Constant("it fails"))) - before; n != 1000-logLines {
		t.Errorf("%v lines are counted, want %d", n, 1000-logLines)
	}
	if lines.FilterMessage("something else").Len() != 1 {
		t.Error("another message is not logged")
	}
}
