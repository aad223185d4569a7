package agents

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	_ "github.com/weirhq/weir/modules/standard"
)

var (
	full   = flag.Bool("full", false, "run 50 sessions, not 10")
	others = flag.Int64("others", 1000, "make so many calls of others between those of the sessions")
)

// site is a Weir in front of a provider that answers each call as it is labelled.
type site struct {
	t    *testing.T
	url  string
	dir  string // of its store
	call *Call  // under way
}

func serve(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if gjson.GetBytes(body, "model").Str == othersModel {
			_, _ = io.WriteString(w, `{"id":"o","object":"chat.completion","model":"`+othersModel+`","choices":[{"index":0,"message":{"role":"assistant","content":"A weir holds the water back."},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":7,"total_tokens":27}}`)
			return
		}
		s.call.Reply(w, r.URL.Path, body)
	}))
	t.Cleanup(provider.Close)
	address := freeport.Address(t)
	s.url = "http://" + address
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(fmt.Appendf(nil, `
		{
			admin off
			persist_config off
			log {
				level error
			}
			llm {
				store sqlite %[3]s/weir.db
				key secret
				provider openai {
					base_url %[2]s/v1
					api_key x
				}
				provider anthropic {
					base_url %[2]s
					api_key x
				}
				provider gemini {
					base_url %[2]s
					api_key x
				}
			}
		}
		http://%[1]s {
			handle_path /openai/* {
				llm_proxy openai %[2]s
			}
			handle_path /anthropic/* {
				llm_proxy anthropic %[2]s
			}
			handle_path /gemini/* {
				llm_proxy gemini %[2]s
			}
			llm_gateway {
				retries 0
			}
			llm_query
		}`, address, provider.URL, s.dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	return s
}

// send makes a call and returns the id of its record.
func (s *site) send(c *Call) string {
	s.t.Helper()
	if c.Late {
		time.Sleep(3 * time.Millisecond) // longer than the call before asked the provider to keep it
	}
	url := s.url + c.Path
	if !c.Client.Gateway {
		url = s.url + "/" + c.Provider + c.Path
	}
	r, err := http.NewRequest("POST", url, bytes.NewReader(c.Body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = c.Header
	if c.Client.Gateway {
		r.Header.Set("Authorization", "Bearer secret")
	}
	s.call = c
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != c.Status {
		s.t.Fatalf("%s %s: %d %s, %v", c.Client.Dialect, url, resp.StatusCode, answer, err)
	}
	return resp.Header.Get("Service-Id")
}

// othersModel is the model that others call.
const othersModel = "gpt-4o-mini"

// disturb makes the calls of others from one to another, many at once. Half of them have one of a
// hundred prompts.
func (s *site) disturb(from, to int64) {
	s.t.Helper()
	const callers = 16
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	var group sync.WaitGroup
	for caller := range int64(callers) {
		group.Go(func() {
			for n := from + caller; n < to; n += callers {
				prompt := n
				if n%2 == 0 {
					prompt = n / 2 % 100
				}
				body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"What does weir %d hold back?"}]}`, othersModel, prompt)
				resp, err := client.Post(s.url+"/openai/v1/chat/completions", "application/json", strings.NewReader(body))
				if err != nil {
					s.t.Error(err)
					return
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
					s.t.Errorf("%d, %v", resp.StatusCode, err)
				}
				resp.Body.Close()
			}
		})
	}
	group.Wait()
}

// ask asks the query API.
func (s *site) ask(path, body string) gjson.Result {
	s.t.Helper()
	r, err := http.NewRequest("POST", s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer secret")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d %s, %v", path, resp.StatusCode, answer, err)
	}
	return gjson.GetBytes(answer, "data")
}

// records returns so many records, by their ids.
func (s *site) records(count int) map[string]gjson.Result {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		records := make(map[string]gjson.Result)
		for offset := 0; offset < count; offset += 1000 {
			for _, r := range s.ask("/v1/request/query-clickhouse", fmt.Sprintf(`{"filter":{"request_response_rmt":{"model":{"not-equals":%q}}},"limit":1000,"offset":%d}`, othersModel, offset)).Array() {
				records[r.Get("request_id").Str] = r
			}
		}
		if len(records) == count {
			return records
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d records of %d calls", len(records), count)
		}
	}
}

// prices are dollars for a million tokens: of input, of input from the cache, and of
// input that is written to it.
var prices = map[string][3]float64{
	"gpt-5": {1.25, 0.125, 1.25}, "gpt-5-mini": {0.25, 0.025, 0.25},
	"claude-sonnet-4-5": {3, 0.3, 3.75}, "claude-haiku-4-5": {1, 0.1, 1.25},
	"gemini-2.5-pro": {1.25, 0.125, 1.25}, "gemini-2.5-flash": {0.3, 0.03, 0.3},
}

// tree is what the calls of a tree add up to; its cost is in billionths of a dollar.
type tree struct{ requests, cost int64 }

// share counts what is right.
type share struct{ right, all int }

func (s *share) add(right bool) bool {
	s.all++
	if right {
		s.right++
	}
	return right
}

func (s share) percent() float64 { return 100 * float64(s.right) / float64(max(s.all, 1)) }

// The calls of agents are linked, and the causes of their cache misses found, through the
// proxy and the gateway, in each format, with and without headers that name them.
func TestLineageOfAgentSessions(t *testing.T) {
	count := 10
	if *full {
		count = 50
	}
	calls := Sessions(1, count)
	s := serve(t)
	ids := make(map[*Call]string)
	for i, c := range calls {
		s.disturb(*others*int64(i)/int64(len(calls)), *others*int64(i+1)/int64(len(calls)))
		ids[c] = s.send(c)
	}
	records := s.records(len(calls))
	parents, causes := make(map[bool]*share), make(map[string]*share)
	for _, named := range []bool{true, false} {
		parents[named] = new(share)
	}
	var roots, turns share
	var lost, sheet float64
	wrong := make(map[string]int)
	for _, c := range calls {
		r := records[ids[c]]
		named := c.Client.Headers != ""
		what := fmt.Sprintf("%s %s gateway=%v", c.Client.Dialect, c.Client.Headers, c.Client.Gateway)
		if !parents[named].add(r.Get("parent_request_id").Str == ids[c.Parent]) {
			wrong[fmt.Sprintf("parent: %s, turn %d, status %d", what, c.Turn, c.Status)]++
		}
		roots.add(r.Get("root_request_id").Str == ids[c.Root])
		turns.add(r.Get("turn").Int() == int64(c.Turn))
		miss, at := r.Get("cache_miss_reason").Str, r.Get("cache_miss_at").Str
		if causes[c.Miss] == nil {
			causes[c.Miss] = new(share)
		}
		if !causes[c.Miss].add(miss == c.Miss && at == c.MissAt && r.Get("cache_missed_tokens").Int() == int64(c.Missed)) {
			wrong[fmt.Sprintf("cause: %s: %s %s instead of %s %s; turn %d, parent right %v", what, miss, at, c.Miss, c.MissAt, c.Turn, r.Get("parent_request_id").Str == ids[c.Parent])]++
			continue
		}
		if c.Miss != "" {
			price := prices[c.Model]
			paid := price[0]
			if c.Usage.Written > 0 {
				paid = price[2]
			}
			loss := float64(c.Missed) * (paid - price[1]) / 1e6
			if got := r.Get("cache_loss").Num; math.Abs(got-loss) > 1e-9 {
				t.Errorf("%s %s %s: %v dollars are lost, not %v", what, c.Model, c.Miss, got, loss)
			}
			lost, sheet = lost+r.Get("cache_loss").Num, sheet+loss
		}
	}
	trees := make(map[string]*tree)
	for id, r := range records {
		root := cmp.Or(r.Get("root_request_id").Str, id)
		if trees[root] == nil {
			trees[root] = new(tree)
		}
		trees[root].requests++
		trees[root].cost += int64(math.Round(r.Get("cost").Num * 1e9))
	}
	for root, own := range trees {
		totals := s.ask("/v1/metrics/query", fmt.Sprintf(`{"bucket":"none","filter":{"operator":"or",
			"left":{"request_response_rmt":{"request_id":{"equals":%[1]q}}},"right":{"request_response_rmt":{"root_request_id":{"equals":%[1]q}}}}}`, root)).Get("totals")
		if rolled := (tree{totals.Get("requests").Int(), int64(math.Round(totals.Get("cost").Num * 1e9))}); rolled != *own {
			t.Errorf("the calls of a tree are %+v, and add up to %+v", *own, rolled)
		}
	}
	for what, n := range wrong {
		t.Logf("%d %s", n, what)
	}
	var planted share
	for cause, s := range causes {
		t.Logf("%q: %d of %d", cause, s.right, s.all)
		if cause != "" {
			planted.right, planted.all = planted.right+s.right, planted.all+s.all
		}
	}
	t.Logf("%d calls of %d sessions: parents %.1f %% right with headers, %.1f %% without; roots %.1f %%, turns %.1f %%; causes %.1f %%; %.9f dollars lost",
		len(calls), count, parents[true].percent(), parents[false].percent(), roots.percent(), turns.percent(), planted.percent(), lost)
	if parents[true].percent() < 98 || parents[false].percent() < 90 {
		t.Error("too few parents are right")
	}
	if planted.percent() < 95 {
		t.Error("too few causes are right")
	}
	if math.Abs(lost-sheet) > 1e-9 {
		t.Errorf("%v dollars are lost, not %v", lost, sheet)
	}
}

// Calls whose content is omitted are linked, and nothing of it is on the disk.
func TestOmittedContentIsLinkedAndNowhereWritten(t *testing.T) {
	s := serve(t)
	client := &Clients[2]
	main := (&session{labeller: newLabeller(1, 1), Client: client, id: "omitted"}).thread("main", strings.Repeat("The canary is in the system. ", 80))
	main.say("The canary is in a question.")
	var ids []string
	for range 3 {
		c := main.ask(Message{Role: "assistant", Text: "The canary is in an answer.", Calls: []ToolCall{main.tool("canary", "The canary is in an argument.")}})
		c.Header.Set("Service-Omit-Request", "true")
		c.Header.Set("Service-Omit-Response", "true")
		ids = append(ids, s.send(c))
		main.messages = append(main.messages, Message{Role: "tool", Text: "The canary is in a result.", Of: c.Answer.Calls[0]})
	}
	for i, r := range s.records(len(ids)) {
		if n := slices.Index(ids, i); n > 0 && r.Get("parent_request_id").Str != ids[n-1] || r.Get("turn").Int() != int64(n+1) {
			t.Errorf("turn %d: %s", n+1, r.Raw)
		}
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("canary")) {
			t.Errorf("%s has what was omitted", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files, %v", files, err)
	}
}
