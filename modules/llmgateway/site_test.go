package llmgateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/background"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/responsesapi"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/retrieval"
	"github.com/weirhq/weir/plugins/streams"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
	"github.com/weirhq/weir/storage/shared"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of short calls in a small heap
	m.Run()
}

func init() {
	caddy.RegisterModule(new(plain))
	caddy.RegisterModule(new(nativeProvider))
	caddy.RegisterModule(new(counting))
}

// plain is a provider of a dialect of its own: events like `text hello`, `call
// call-1 {}`, `usage 3 5`, `stop` and `panic`, each as the data of a server-sent
// event. It is sent the model, what it thought and the names of what it called, and of
// MCP tools their names and results.
type plain struct{}

func (*plain) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.providers.plain", New: func() caddy.Module { return new(plain) }}
}

func (*plain) DefaultTarget() (baseURL, keyEnv string) { return "", "" }

func (*plain) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	if err := p.Apply(translate.DefaultPolicy); err != nil {
		return nil, err
	}
	body := t.Model
	for _, tool := range p.Tools {
		if tool.MCP != nil && p.ToolChoice.Allows(&tool) {
			body += " " + p.ToolChoice.Mode + "[" + tool.Name + "]"
		}
	}
	for _, turn := range p.Turns {
		for _, item := range turn.Items {
			switch item := item.(type) {
			case *translate.ReasoningItem:
				body += " " + item.EncryptedContent
			case *translate.ToolCall:
				body += " " + item.Name
			case *translate.ToolOutput:
				if tool := p.Tool(item.Name); tool != nil && tool.MCP != nil {
					body += fmt.Sprintf("=%v %s", !item.Failed, item.Content[0].Text)
				}
			}
		}
	}
	req, err := http.NewRequestWithContext(ctx, "POST", t.BaseURL+"/plain", strings.NewReader(body))
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+t.Key)
	}
	return req, err
}

func (*plain) Decode(resp *http.Response, a *translate.Assembler) error {
	for e, err := range streams.ReadSSE(resp.Body) {
		if err != nil {
			return err
		}
		verb, rest, _ := strings.Cut(string(e.Data), " ")
		switch verb {
		case "model":
			a.Start(rest, "up-1")
		case "text":
			a.Text(0, rest)
		case "think":
			a.Seal(1, rest)
		case "call":
			id, args, _ := strings.Cut(rest, " ")
			a.Call(2, id, "tool")
			a.Args(2, args)
			a.Close(2)
		case "use": // of tools by their names
			name, rest, _ := strings.Cut(rest, " ")
			id, args, _ := strings.Cut(rest, " ")
			a.Call(2, id, name)
			a.Args(2, args)
			a.Close(2)
		case "usage":
			var u plugins.Usage
			u.Input.Valid, u.Output.Valid = true, true
			fmt.Sscan(rest, &u.Input.N, &u.Output.N)
			a.Usage(u)
		case "stop":
			a.Finish(translate.ReasonStop)
		case "wrong": // a call that the model has got wrong
			a.Fail(&plugins.Error{Status: http.StatusUnprocessableEntity, Type: "server_error", Message: rest})
		case "panic":
			panic("told to")
		}
	}
	return nil
}

func (*plain) Error(resp *http.Response) *plugins.Error {
	body, _ := io.ReadAll(resp.Body)
	e := plugins.Upstream("%s", body)
	e.Status, e.RetryAfter = resp.StatusCode, plugins.RetryAfter(resp.Header)
	return e
}

// counting is a provider like plain that counts tokens.
type counting struct{ plain }

func (*counting) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.providers.counting", New: func() caddy.Module { return new(counting) }}
}

func (c *counting) PrepareCount(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	t.BaseURL += "/count"
	return c.Prepare(ctx, p, t)
}

func (*counting) Tokens(body []byte) (n int64, ok bool) {
	_, err := fmt.Sscan(string(body), &n)
	return n, err == nil
}

// nativeProvider is a provider that speaks every dialect of the gateway.
type nativeProvider struct{ plain }

func (*nativeProvider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.providers.native", New: func() caddy.Module { return new(nativeProvider) }}
}

func (*nativeProvider) PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*http.Request, error) {
	path := map[plugins.Dialect]string{
		plugins.Responses: "/responses", plugins.Chat: "/chat/completions", plugins.Messages: "/messages",
		plugins.CountTokens: "/messages/count_tokens", plugins.Compaction: "/responses/compact", plugins.InputTokens: "/responses/input_tokens",
	}[d]
	return http.NewRequestWithContext(ctx, "POST", t.BaseURL+path, bytes.NewReader(body.Data))
}

func (*nativeProvider) Error(resp *http.Response) *plugins.Error {
	return openai.Provider{}.Error(resp)
}

func (*nativeProvider) PrepareEndpoint(ctx context.Context, method, path string, t translate.Target) (*http.Request, error) {
	return t.Request(ctx, method, strings.TrimPrefix(path, "/v1"), translate.Bearer)
}

// TranslateEndpoint implements translate.EndpointTranslator for one model, which embeds one text a
// request.
func (*nativeProvider) TranslateEndpoint(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	if d != plugins.Embeddings || t.Model != "embeds" {
		return nil, errors.ErrUnsupported
	}
	e, err := retrieval.ParseEmbeddings(body)
	if err != nil {
		return nil, err
	}
	return e.Call(t.Model, 1, func(texts []string) (*http.Request, error) {
		return t.Post(ctx, "/embed", translate.Bearer, map[string]string{"text": texts[0]})
	}, func(a translate.EndpointAnswer) retrieval.Vectors {
		answer := gjson.ParseBytes(a.Body)
		return retrieval.Vectors{All: []gjson.Result{answer.Get("vector")}, Tokens: plugins.Known(answer.Get("tokens").Int())}
	}), nil
}

// ledger is a recorder that remembers what it was given.
type ledger struct {
	mu      sync.Mutex
	order   []storage.RecordKey
	records map[storage.RecordKey]entry
	used    map[storage.RecordKey]bool
	begun   uint64 // exchanges
	counted uint64 // those of them that have a record

	abandoned uint64 // the others
	imported  uint64 // records of no exchange: calls of a batch

	changes []*storage.Annotation // of conversations
	pages   []storage.ItemPage    // that were read of conversations
}

type entry struct {
	storage.Record
	request, response string
	responseType      string
}

func (l *ledger) Append(r *storage.Record, k *storage.Kept) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k == nil { // an amendment, whose content stays
		amended := l.records[r.Key()]
		amended.Record = *r
		l.records[r.Key()] = amended
		return nil
	}
	c := k.Content(r)
	if _, ok := l.records[r.Key()]; !ok {
		l.order = append(l.order, r.Key())
		if r.Number == 0 {
			l.imported++
		}
	}
	if r.Number > 0 {
		l.counted++
		r.Number = 0
	}
	l.records[r.Key()] = entry{*r, string(c.Request.Data), string(c.Response.Data), c.Response.Type}
	return nil
}

func (l *ledger) Begin(r *storage.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun++
	r.Number = l.begun
}

func (l *ledger) Abandon(r *storage.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Number > 0 {
		l.abandoned++
		r.Number = 0
	}
}

// Request implements history.Journal.
func (l *ledger) Request(_ context.Context, key storage.RecordKey) (*storage.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.records[key]
	if !ok || e.EndState == storage.Interrupted {
		return nil, storage.ErrNotFound
	}
	return &e.Record, nil
}

// Response implements history.Journal.
func (l *ledger) Response(_ context.Context, org, id string) (*storage.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.records {
		if e.ResponseID == id && e.Org == org && slices.Contains(storage.Polled, e.Dialect) {
			return &e.Record, nil
		}
	}
	return nil, storage.ErrNotFound
}

// Conversation implements history.Journal.
func (l *ledger) Conversation(_ context.Context, org, id string, page storage.ItemPage) (*storage.Conversation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var changes []*storage.Annotation
	for _, a := range l.changes {
		if a.Org == org && a.Conversation.ID == id {
			changes = append(changes, a)
		}
	}
	l.pages = append(l.pages, page)
	if c := storage.ConversationOf(changes); c != nil {
		return c, c.Choose(page, func(item *storage.ConversationItem) int64 { return int64(len(item.JSON)) })
	}
	return nil, storage.ErrNotFound
}

// Contents implements history.Journal.
func (l *ledger) Contents() storage.Contents { return ledgerContents{l} }

// Shared implements history.Journal.
func (l *ledger) Shared() bool { return false }

// Flush implements history.Journal.
func (l *ledger) Flush(context.Context) error { return nil }

// AppendAnnotation implements history.Journal.
func (l *ledger) AppendAnnotation(a *storage.Annotation) error {
	if err := a.Redact(nil); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.Conversation != nil {
		l.changes = append(l.changes, a)
		return nil
	}
	e := l.records[a.Key()]
	e.Properties = map[string]string{a.Property.Name: a.Property.Value}
	l.records[a.Key()] = e
	return nil
}

type ledgerContents struct{ *ledger }

func (l ledgerContents) Content(_ context.Context, r *storage.Record) (*storage.Content, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.records[r.Key()]
	body, _ := observe.Transcript(r.Dialect).Stored(e.responseType, []byte(e.response))
	return &storage.Content{Request: storage.Body{Data: []byte(e.request)}, Response: storage.Body{Data: body}}, nil
}

func (l ledgerContents) Reader(storage.ContentPart) storage.ContentReader { panic("not used") }

// open are the exchanges that have not ended.
func (l *ledger) open() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun - l.counted - l.abandoned
}

// check fails unless every exchange has a record, and every record counts.
func (l *ledger) check(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun != l.counted+l.abandoned || len(l.order) != int(l.counted+l.imported) {
		t.Errorf("%d exchanges began, %d have a record, %d are lost, and there are %d records", l.begun, l.counted, l.abandoned, len(l.order))
	}
}

func (l *ledger) Claim(_ context.Context, key storage.RecordKey) bool {
	defer func() { l.used[key] = true }()
	return !l.used[key]
}

func (l *ledger) Release(storage.RecordKey) {}

func (l *ledger) Known(_ context.Context, key storage.RecordKey) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.records[key]
	return known, nil
}

// all are the records in the order of their first commit.
func (l *ledger) all() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []entry
	for _, key := range l.order {
		list = append(list, l.records[key])
	}
	return list
}

// site is a gateway in front of upstreams that tests script.
type site struct {
	logs *observer.ObservedLogs // of the gate
	*httptest.Server
	t       *testing.T
	handler *Handler
	kept    *ledger

	credits    credits.Ledger
	creditsDir string
	memory     shared.Memory
	breakers   shared.Breakers
}

// upstream answers one attempt.
type upstream func(w http.ResponseWriter, r *http.Request)

// pricedContext is the context of the models that have a price, in tokens.
const pricedContext = 1000

// serve starts a gateway whose provider `one` is of the kind plain, `two` of counting,
// and `raw` and `raw2` of the kind native. Attempts at them are answered by the
// upstreams given, in their order; the last one answers all that follow.
func serve(t *testing.T, upstreams map[string][]upstream) *site {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	var mu sync.Mutex
	var providers []string
	for _, p := range []struct{ label, kind string }{{"one", "plain"}, {"two", "counting"}, {"raw", "native"}, {"raw2", "native"}} {
		script := upstreams[p.label]
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			answer := script[0]
			if len(script) > 1 {
				script = script[1:]
			}
			mu.Unlock()
			answer(w, r)
		}))
		t.Cleanup(server.Close)
		providers = append(providers, fmt.Sprintf(`{"label": %q, "api": {"kind": %q}, "base_url": %q, "api_key": "platform-key"}`, p.label, p.kind, server.URL))
	}
	base, err := caddy.ProvisionContext(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(base)
	t.Cleanup(cancel)
	prices := filepath.Join(t.TempDir(), "prices.json")
	price := `"input": ["text"], "output": ["text"], "context": ` + strconv.Itoa(pricedContext) + `, "prices": [{"input": "1000", "output": "2000"}]`
	if err := os.WriteFile(prices, []byte(`{"providers": [{"id": "one", "models": [
		{"id": "m", `+price+`}, {"id": "cheap", "prices": [{"input": "0.001", "output": "0.001"}]}, {"id": "brief", "max_output": 100, `+price+`}]},
		{"id": "raw", "models": [{"id": "priced", `+price+`}, {"id": "thinks", "reasoning": true, `+price+`}, {"id": "writes", "max_output": 64000, "prices": [{"input": "5", "output": "25"}]}, {"id": "batched", "prices": [{"input": "1", "output": "2"}, {"tier": "batch", "input": "0.5", "output": "1"}]}, {"id": "paint", "prices": [{"image": "0.04"}]},
			{"id": "embeds", "prices": [{"input": "1000"}]}, {"id": "rank", "prices": [{"search_unit": "0.002"}]}, {"id": "hear", "prices": [{"audio_hour": "0.36"}]}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(providers[0], "platform-key", "own-key", 1)
	ownRaw := strings.Replace(providers[2], "platform-key", "own-key", 1)
	loaded, err := ctx.LoadModuleByID("llm", json.RawMessage(`{
		"keys": [{"secret": "k"}, {"secret": "narrow", "scopes": ["query"]}],
		"catalog": "`+prices+`",
		"orgs": {"payer": {"keys": [{"secret": "payer"}], "credits": "1"}, "capped": {"keys": [{"secret": "capped"}, {"secret": "lax"}], "budgets": [
				{"name": "all", "limit": "0.4", "window": "total", "filter": {"request_response_rmt": {"properties": {"Team": {"not-equals": "free"}}}}, "trust": true},
				{"name": "each", "limit": "0.09", "per": "user", "trust": true},
				{"name": "vouched", "limit": "0.2", "per": "user", "window": "day", "timezone": "Europe/Berlin"}]},
			"agents": {"keys": [{"secret": "agents"}], "budgets": [{"name": "agents", "limit": "25", "window": "total"}]},
			"brisk": {"keys": [{"secret": "brisk"}], "budgets": [{"name": "brisk", "limit": "3", "window": "total"}]},
			"watched": {"keys": [{"secret": "watched"}], "budgets": [{"name": "dollars", "limit": "1", "observe": true},
				{"name": "pace", "limit": "1", "quantity": "requests", "window": "1h", "observe": true}]},
			"patient": {"keys": [{"secret": "patient"}], "budgets": [{"name": "one", "limit": "0.09", "wait": 30000000000, "on_unpriced": "pass"}]},
			"limited": {"keys": [{"secret": "limited"}], "budgets": [
				{"name": "calls", "limit": "3", "quantity": "requests", "window": "1h", "per": "user", "trust": true, "filter": {"request_response_rmt": {"user_id": {"not-equals": "talker"}}}},
				{"name": "words", "limit": "360", "quantity": "tokens", "window": "1h", "filter": {"request_response_rmt": {"user_id": {"equals": "talker"}}}, "trust": true}]},
			"warned": {"keys": [{"secret": "warned"}], "budgets": [
				{"name": "each", "limit": "1", "window": "total", "per": "user", "trust": true, "stages": [{"at": 10}, {"at": 50}]},
				{"name": "pace", "limit": "20", "quantity": "requests", "window": "total", "stages": [{"at": 100}]}]},
			"thrifty": {"keys": [{"secret": "thrifty"}], "budgets": [{"name": "thrift", "limit": "0.1", "window": "total", "per": "user", "trust": true,
				"stages": [{"at": 10, "use": "cheaper"}, {"at": 30, "use": "cheapest"}]}]},
			"cutting": {"keys": [{"secret": "cutting"}], "budgets": [{"name": "cut", "limit": "0.8", "window": "total", "per": "user", "trust": true, "cut": true}]},
			"slow": {"keys": [{"secret": "slow"}], "budgets": [{"name": "two \"at\" once", "limit": "2", "quantity": "concurrent"}, {"name": "all", "limit": "100", "quantity": "requests", "window": "1h"}, {"name": "second", "limit": "1", "quantity": "requests", "window": "1s", "wait": 30000000000, "filter": {"request_response_rmt": {"user_id": {"equals": "patient"}}}, "trust": true}]},
			"payer2": {"keys": [{"secret": "payer2"}], "credits": "1"},
			"both": {"keys": [{"secret": "both"}], "providers": [`+ownRaw+`]}, "acme": {"keys": [{"secret": "acme"}], "providers": [`+own+`]}},
		"aliases": {"cheaper": ["one/brief"], "cheapest": ["one/cheap"], "both": ["one/m", "two/m"], "raws": ["raw/m", "raw2/m"],
			"brief": {"models": [{"model": "raw/m", "limit": {"max_tokens": 64}}]}, "chosen": {"models": [{"model": "raw/m", "when": "tools=true"}, {"model": "raw2/m"}]},
			"tuned": {"models": [{"model": "raw/priced", "limit": {"max_tokens": 300}, "set": {"reasoning_effort": "low"}}]},
			"shadowed": {"models": [{"model": "raw/priced"}], "shadows": [{"model": "one/m", "share": 1}, {"model": "raw2/priced", "share": 1}]},
			"tunes": {"models": [{"model": "one/m", "limit": {"max_tokens": 300}}]}},
		"providers": [`+strings.Join(providers, ",")+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	logs, lines := observer.New(zap.WarnLevel)
	s := &site{t: t, logs: lines, kept: &ledger{records: make(map[storage.RecordKey]entry), used: make(map[storage.RecordKey]bool)}}
	s.memory, s.breakers = new(shared.LocalMemory), new(shared.LocalBreakers)
	s.creditsDir = t.TempDir()
	if s.credits, err = embedded.Open(s.creditsDir, nil, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.credits.Close(context.Background()) })
	s.handler = &Handler{MaxBody: defaultMaxBody, MaxItems: defaultMaxItems, MaxTools: defaultMaxTools}
	app := loaded.(*llmapp.App)
	app.Money().Logger = zap.New(logs)
	app.Money().Ledger = func(string) (credits.Ledger, error) { return s.credits, nil }
	secrets := func() (*secret.Secrets, error) {
		return secret.New([]byte("secret"), func() shared.Memory { return s.memory })
	}
	s.handler.gateway = gateway{
		secrets: secrets,
		responses: responsesapi.Deps{
			Journal: func() (history.Journal, error) { return s.kept, nil }, Mask: app.Maskers().Of, Secrets: secrets,
			Nodes: func() shared.Runs { return nil }, Runs: new(background.Runs), Logger: zap.NewNop(),
		},
		breakers: func() shared.Breakers { return s.breakers }, affinity: func() shared.Affinity { return nil },
		site: &recording.Site{
			App: app, Store: stores.DefaultName, Logger: zap.NewNop(),
			Open: func(context.CancelFunc) (recording.Recorder, func(), error) { return s.kept, func() {}, nil },
		},
		policy: routing.Policy{Retries: 1, Backoff: 2, TryDuration: defaultTryDuration},
	}
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return nil
	})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.handler.ServeHTTP(w, r, next); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(func() {
		s.Close() // waits for the exchanges
		s.kept.check(t)
		for _, org := range []string{"", "acme", "both"} {
			checkTargets(t, app.Resolver(org))
		}
	})
	return s
}

// checkTargets fails if somebody has changed the targets of a name that a resolver remembers.
func checkTargets(t *testing.T, r *routing.Resolver) {
	fresh := &routing.Resolver{Catalog: r.Catalog, Accounts: r.Accounts, Keyless: r.Keyless, Aliases: r.Aliases}
	for _, name := range reflect.ValueOf(r).Elem().FieldByName("remembered").MapKeys() {
		got, _, _ := r.Resolve(name.String())
		if want, _, err := fresh.Resolve(name.String()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the targets of %q have become %v, not %v: clone what Resolve returns before you change it", name, got, want)
		}
	}
}

// settled waits until all exchanges have ended: nothing tells when the handler of a
// WebSocket is done.
func (s *site) settled() {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); s.kept.open() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%d exchanges have not ended within 30 seconds", s.kept.open())
		}
	}
}

// post calls a model and reads the whole answer.
func (s *site) post(body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	return s.postTo("/v1/responses", strings.NewReader(body), header...)
}

// postTo is post to another endpoint.
func (s *site) postTo(path string, body io.Reader, header ...string) (*http.Response, string) {
	s.t.Helper()
	return s.send("POST", path, body, header...)
}

// send sends any request and reads the whole answer.
func (s *site) send(method, path string, body io.Reader, header ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer k")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(answer)
}

// says is an upstream that answers events.
func says(events ...string) upstream {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Request-Id", "upstream-id")
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// readAndRestore reads the body of a request that another handler reads again.
func readAndRestore(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

// status is an upstream that answers an error.
func status(code int) upstream {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no luck", code) }
}
