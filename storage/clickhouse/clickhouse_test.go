package clickhouse_test

import (
	"os"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/clickhouse"
	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
)

func TestMain(m *testing.M) { os.Exit(clickhousetest.Main(m)) }

// relaxed are the guarantees that ClickHouse does not give.
var relaxed = storagetest.Relaxed{
	NoPositions: true, Partial: true, KeepsAnnotations: true, FixedTimes: true, PruneGranularity: 24 * time.Hour,
}

func open(t *testing.T) storage.Backend {
	return clickhouse.New(clickhouse.Config{Options: *clickhousetest.Options(t)})
}

func TestContract(t *testing.T) { storagetest.Run(t, open, relaxed) }

func TestAnalytics(t *testing.T) { storagetest.RunAnalytics(t, open, relaxed) }
