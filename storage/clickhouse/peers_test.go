package clickhouse_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	backend "github.com/weirhq/weir/storage/clickhouse"
	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
)

// The statement of the documentation says of a node that it has stopped, and keeps what the node has said.
func TestErasureNoLongerWaitsForANodeThatIsGone(t *testing.T) {
	page, err := os.ReadFile("../../docs/storage_clickhouse.md")
	if err != nil {
		t.Fatal(err)
	}
	_, statement, _ := strings.Cut(string(page), "```sql\nINSERT INTO nodes")
	statement, _, found := strings.Cut(statement, ";\n```")
	if !found {
		t.Fatal("the documentation has no statement")
	}
	server := clickhousetest.Start(t, "")
	o := clickhouse.Options{Addr: []string{server.Addr}, Auth: clickhouse.Auth{Database: "weir"}, DialTimeout: time.Second}
	b := backend.New(backend.Config{Options: o})
	node := uuid.New()
	if _, err := b.Open(t.Context(), &storage.Host{Journal: node}); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.LeaveNote(t.Context(), node, `{"Host":"gone","Listed":3}`); err != nil {
		t.Fatal(err)
	}
	conn, err := clickhouse.Open(&o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Exec(t.Context(), "INSERT INTO nodes"+strings.ReplaceAll(statement, "…", node.String())); err != nil {
		t.Fatal(err)
	}
	notes, err := b.Notes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var note struct {
		Host   string
		Listed int64
		Left   bool
	}
	if err := json.Unmarshal([]byte(notes[node].Text), &note); err != nil || note.Host != "gone" || note.Listed != 3 || !note.Left {
		t.Errorf("it says %q, %v", notes[node].Text, err)
	}
}
