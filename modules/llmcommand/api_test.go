package llmcommand

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of rows in a small heap
	m.Run()
}

// api plays the query API over records in memory.
type api struct {
	mu      sync.Mutex
	records []*storage.Record
	queries int
	// before is called before each query, and may add records or refuse.
	before func(q *storage.RequestQuery) (status int)
	// breakAfter breaks answers off after so many records, if not 0.
	breakAfter int
	// body is the request body of every record.
	body string
	// older is true for a server that knows no columns of lines.
	older bool
	// prices are those of the server, nil for the built-in ones.
	prices *catalog.Catalog
}

func (a *api) add(records ...*storage.Record) { a.records = append(a.records, records...) }

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Method == http.MethodGet && r.URL.Path == "/v1/catalog" {
		_ = json.NewEncoder(w).Encode(map[string]any{"data": cmp.Or(a.prices, catalog.Default()), "error": nil})
		return
	}
	isExport := r.URL.Path == "/v1/export"
	if r.Method != http.MethodPost || r.URL.Path != "/v1/request/query-clickhouse" && !isExport {
		http.NotFound(w, r)
		return
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"data":null,"error":"the API key is not known here"}`)
		return
	}
	var body struct {
		Filter, Sort  json.RawMessage
		Offset, Limit int
		Columns       []string
	}
	err := json.NewDecoder(r.Body).Decode(&body)
	q := &storage.RequestQuery{Offset: body.Offset, Limit: body.Limit}
	if err == nil {
		q.Filter, err = storage.ParseFilter(body.Filter, storage.RequestResponse)
	}
	if err == nil {
		q.Sort, _, err = storage.ParseSort(body.Sort)
	}
	if err == nil && a.older && body.Columns != nil {
		err = errors.New(`columns: only a table has columns: add "format": "csv"`)
	}
	if err == nil && q.Limit > 1000 {
		err = fmt.Errorf("limit: a whole number from 0 to 1000 is expected, not %d", q.Limit)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]any{"data": nil, "error": err.Error()})
		return
	}
	a.queries++
	if a.before != nil {
		if status := a.before(q); status != 0 {
			w.WriteHeader(status)
			io.WriteString(w, `{"data":null,"error":"the query took longer than 10s; narrow its filter"}`)
			return
		}
	}
	if isExport {
		w.Header().Set("Content-Type", "application/x-ndjson")
		q.Sort, q.Limit = []storage.Sort{{Key: storage.SortCreatedAt}}, len(a.records)
	} else {
		io.WriteString(w, `{"data":[`)
	}
	for i, record := range storage.Evaluate(q, a.records, func(*storage.Record) *storage.Content { return nil }) {
		if a.breakAfter > 0 && i == a.breakAfter {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		if isExport {
			a.write(w, record, body.Columns)
			io.WriteString(w, "\n")
			continue
		}
		if i > 0 {
			io.WriteString(w, ",")
		}
		a.write(w, record, nil)
	}
	if !isExport {
		io.WriteString(w, `],"error":null}`)
	}
}

// write writes the fields that the commands read, of some if they are named.
func (a *api) write(w io.Writer, r *storage.Record, of []string) {
	orNull := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	var cost *float64
	if r.Cost.Valid {
		dollars := r.Cost.Float()
		cost = &dollars
	}
	fields := map[string]any{
		"request_id":          r.ID.String(),
		"request_created_at":  r.CreatedAt,
		"response_created_at": nil,
		"response_status":     r.Status,
		"delay_ms":            r.Latency,
		"time_to_first_token": r.TimeToFirstToken,
		"provider":            r.Provider,
		"account":             orNull(r.Account),
		"model":               orNull(r.Model),
		"response_model":      orNull(r.ResponseModel),
		"response_id":         orNull(r.ResponseID),
		"service_tier":        orNull(r.ServiceTier),
		"end_state":           r.EndState.String(),
		"request_user_id":     orNull(r.UserID),
		"prompt_tokens":       r.Usage.Input,
		"completion_tokens":   r.Usage.Output,
		"total_tokens":        r.Usage.Total(),
		"cost":                cost,
		"is_subscription":     r.Subscription,
		"properties":          r.Properties,
	}
	if r.RespondedAt != 0 {
		fields["response_created_at"] = r.RespondedAt
	}
	if of != nil {
		maps.DeleteFunc(fields, func(name string, _ any) bool { return !slices.Contains(of, name) })
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	if a.body != "" && of == nil {
		text = append(text[:len(text)-1], `,"request_body":`+a.body+`}`...)
	}
	w.Write(text)
}

func (a *api) serve(t *testing.T) (address string) {
	t.Helper()
	t.Setenv(keyEnv, "secret")
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return server.URL
}

// id is the nth of some ids whose order is not that of their numbers.
func id(n int) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Append(nil, n)) }

// run executes a command and returns what it wrote to stderr.
func run(ctx context.Context, command func(*cobra.Command), stdout io.Writer, args ...string) (stderr string, err error) {
	var b bytes.Buffer
	err = execute(ctx, command, stdout, &b, args...)
	return b.String(), err
}

func execute(ctx context.Context, command func(*cobra.Command), stdout, stderr io.Writer, args ...string) error {
	cmd := &cobra.Command{SilenceUsage: true, SilenceErrors: true}
	command(cmd)
	markMisuse(cmd)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}
