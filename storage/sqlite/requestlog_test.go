package sqlite

import (
	"context"
	"database/sql/driver"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

var update = flag.Bool("update", false, "write testdata/request_log.golden")

// sample is what the view shows.
func sample() *storage.Batch {
	at, _ := storage.ParseTimestamp("2026-11-20T15:04:05.678Z")
	yes := "yes"
	one, two := uuid.MustParse("019aa1b2-0000-7000-8000-000000000001"), uuid.MustParse("019aa1b2-0000-7000-8000-000000000002")
	return &storage.Batch{
		Records: []*storage.Record{{
			ID: one, Org: "default", CreatedAt: at, RespondedAt: at + 1250, UpdatedAt: at + 1250,
			Latency: plugins.KnownDuration(1250 * time.Millisecond), TimeToFirstToken: plugins.KnownDuration(310 * time.Millisecond), Status: plugins.Known(200),
			Provider: "openai", Dialect: plugins.Chat, Model: "gpt-5-mini", RequestModel: "gpt-5-mini", ResponseModel: "gpt-5-mini-2026-08-07",
			Path: "/v1/chat/completions", TargetURL: "https://api.openai.com/v1/chat/completions",
			ResponseID: "chatcmpl-1", Stream: true, Finish: "stop", Attempt: 1,
			Usage: plugins.Usage{Input: plugins.Known(120), Output: plugins.Known(34), Reasoning: plugins.Known(20)},
			Cost:  plugins.KnownCost(98_000), PriceVersion: "2026-11-01",
			UserID: "ann", SessionID: "s-1", SessionName: "checkout",
			Properties: map[string]string{"Environment": "production", "Quoted": `a "b" <c>`},
			Assets:     []string{"5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"},
			Content:    storage.ContentRef{Segment: 1, Ordinal: 7},
		}, {
			ID: two, Org: "acme", CreatedAt: at + 1, UpdatedAt: at + 1, Status: plugins.Known(502),
			EndState: storage.Failed, Provider: "custom", ErrorType: "connect", Attempt: 2, AttemptOf: one,
		}},
		Annotations: []*storage.Annotation{
			{Org: "default", RequestID: one, At: at + 5000, Scores: map[string]float64{"accuracy": 0.75}},
			{Org: "default", RequestID: one, At: at + 6000, Feedback: &storage.Feedback{ID: 1, Rating: true, CreatedAt: at + 6000}},
			{Org: "default", RequestID: one, At: at + 7000, Property: &storage.Property{Name: "Reviewed", Value: "yes"}},
			{Org: "default", SessionID: "s-1", At: at + 8000, Tag: &yes},
		},
		End: storage.Position{Segment: 1, Ordinal: 8},
	}
}

// requestLog prints the view, one line a value.
func requestLog(t *testing.T, b *Backend) string {
	t.Helper()
	var out strings.Builder
	err := b.withReader(t.Context(), func(ctx context.Context, r reader) error {
		var columns []string
		err := r.c.query(ctx, "SELECT name FROM pragma_table_info('request_log')", nil, func(row []driver.Value) error {
			columns = append(columns, row[0].(string))
			return nil
		})
		if err != nil {
			return err
		}
		return r.c.query(ctx, "SELECT * FROM request_log ORDER BY n", nil, func(row []driver.Value) error {
			for i, v := range row {
				if v == nil {
					v = "NULL"
				}
				fmt.Fprintf(&out, "%15s = %v\n", columns[i], v)
			}
			out.WriteString("\n")
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const golden = "testdata/request_log.golden"

func TestRequestLogReadsWell(t *testing.T) {
	b := newBackend(t)
	write(t, b, sample())
	got := requestLog(t, b)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("request_log reads\n%s\nwant\n%s", got, want)
	}
}
