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
	if err := b.SaveNode(t.Context(), node, `{"Host":"gone","ErasedParts":3}`); err != nil {
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
	nodes, err := b.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Host        string
		ErasedParts int64
		Left        bool
	}
	if err := json.Unmarshal([]byte(nodes[node].State), &state); err != nil || state.Host != "gone" || state.ErasedParts != 3 || !state.Left {
		t.Errorf("its state is %q, %v", nodes[node].State, err)
	}
}

// A table of nodes that somebody drops is there again with the next exchange, and nodes save what they lack.
func TestNodesAfterTheirTableIsDropped(t *testing.T) {
	server := clickhousetest.Start(t, "")
	o := clickhouse.Options{Addr: []string{server.Addr}, Auth: clickhouse.Auth{Database: "weir"}, DialTimeout: time.Second}
	b := backend.New(backend.Config{Options: o})
	node := uuid.New()
	if _, err := b.Open(t.Context(), &storage.Host{Journal: node}); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	conn, err := clickhouse.Open(&o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Exec(t.Context(), "DROP TABLE nodes SYNC"); err != nil {
		t.Fatal(err)
	}
	if nodes, err := b.Nodes(t.Context()); err != nil || nodes[node].State != "" {
		t.Errorf("it reads %v, %v", nodes, err)
	}
	if err := b.SaveNode(t.Context(), node, "state"); err != nil {
		t.Fatal(err)
	}
	if nodes, err := b.Nodes(t.Context()); err != nil || nodes[node].State != "state" {
		t.Errorf("it reads %v, %v", nodes, err)
	}
}
