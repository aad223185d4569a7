package llmcommand

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/modules/internal/stores/storestest"
	_ "github.com/weirhq/weir/modules/llmadmin"
	_ "github.com/weirhq/weir/modules/llmquery"
	_ "github.com/weirhq/weir/storage/sqlite"
)

func checkLack(t *testing.T, err error, directive string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "must name a site with "+directive) {
		t.Errorf("without %s: %v", directive, err)
	}
}

// TestCaddy runs each command against the real thing.
func TestCaddy(t *testing.T) {
	api, admin := freeport.Address(t), freeport.Address(t)
	config := fmt.Sprintf(`{
		"admin": {"listen": %q, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "ERROR"}}},
		"apps": {
			"llm": {"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}}, "keys": [{"secret": "secret"}]},
			"http": {"servers": {"api": {"listen": [%q], "automatic_https": {"disable": true}, "routes": [
				{"handle": [{"handler": "llm_query"}]},
				{"match": [{"path": ["/v1/budgets"]}], "handle": [{"handler": "static_response", "status_code": 404}]}
			]}}}
		}
	}`, admin, filepath.Join(t.TempDir(), "weir.db"), api)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	t.Setenv(keyEnv, "secret")
	t.Setenv(addressEnv, "http://"+api)

	journal := stores.InUse()[0].Opened()
	var records []*storage.Record
	for n := range 2*pageSize + 50 {
		at := storage.Timestamp(1_795_219_200_000 + n/120) // three crowded milliseconds
		r := &storage.Record{
			ID: uuid.Must(uuid.NewV7()), Org: "default", CreatedAt: at, RespondedAt: at + 10, Model: "gpt-4o", UserID: "ada",
			Status: plugins.Known(200), Cost: plugins.KnownCost(1_000_000), Properties: map[string]string{"Env": "prod"},
		}
		if n%10 == 0 {
			r.UserID, r.Cost = "Grace Hopper", plugins.Cost{}
		}
		records = append(records, r)
		body := storage.Body{Type: "application/json", Data: fmt.Appendf(nil, "{\n\"n\": %d,\n\"text\": \"naïve\"}", n)}
		journal.Begin(r)
		if err := journal.Append(r, storagetest.Kept(r, &storage.Content{Request: body})); err != nil {
			t.Fatal(err)
		}
	}
	if err := journal.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	shows := func(want string, command func(*cobra.Command), args ...string) string {
		t.Helper()
		var out bytes.Buffer
		stderr, err := run(t.Context(), command, &out, args...)
		if err != nil || stderr != "" {
			t.Fatalf("%q: %v, stderr %q", args, err, stderr)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q shows\n%s\nwant %q", args, &out, want)
		}
		return out.String()
	}
	shows("20 requests, cost $0.018000 (2 unknown), tokens unknown", queryCommand)
	shows("25 requests, cost unknown", queryCommand, `user="Grace Hopper"`, "property.Env=prod", "since=2026-11-01", "--limit", "100")
	shows("1 request,", queryCommand, `body~"\"n\": 249"`, "cost>=0.001")
	shows("0 requests,", queryCommand, `user="Grace Hopper"`, "cost>0")
	shows("id,cost\n"+records[len(records)-1].ID.String()+",0.001\n", queryCommand, "--format", "csv", "--columns", "id,cost", "--limit", "1")
	checkExport(t, shows(`"request_body":{"n":0,"text":"naïve"}`, exportCommand), records)
	shows("default   250       250", statsCommand, "--admin", "http://"+admin)

	// What the site lacks has a name.
	_, err := run(t.Context(), budgetCommand, io.Discard)
	checkLack(t, err, "llm_control")
	_, err = run(t.Context(), importCommand, io.Discard, "litellm", "testdata/litellm.csv")
	checkLack(t, err, "llm_otlp")

	tail := follow(t, "--lines", "3", "user=ada")
	tail.shows("ada", "ada", "ada")
	next, now := *records[1], storage.Millis(time.Now())
	next.ID, next.CreatedAt, next.RespondedAt = uuid.Must(uuid.NewV7()), now-1000, now
	if err := journal.Append(&next, nil); err != nil {
		t.Fatal(err)
	}
	tail.shows("ada", "ada", "ada", "ada")
	tail.end()
}
