package standard

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

// unfetchedConfig is a site in front of providers of batches.
const unfetchedConfig = `{
	admin off
	persist_config off
	auto_https off
	log {
		output file %[1]s/log
		format llm
	}
	llm {
		store sqlite %[1]s/weir.db
		key weir-root gateway query write log admin
		provider openai {
			base_url %[2]s/v1
			api_key platform-openai
		}
		provider anthropic {
			base_url %[2]s
			api_key platform-anthropic
		}
		provider gemini {
			base_url %[2]s
			api_key platform-gemini
		}
		org rich {
			key weir-rich
			credits 1
		}
	}
}
http://127.0.0.1:%[3]s {
	bind 127.0.0.1
	handle_path /gemini/* {
		llm_proxy gemini {
			credentials platform
		}
	}
	handle_path /anthropic/* {
		llm_proxy anthropic {
			credentials platform
		}
	}
	handle_path /own/* {
		llm_log anthropic {
			require_key
			org rich
		}
		reverse_proxy %[2]s
	}
	handle_path /openai/* {
		llm_log openai {
			require_key
			org rich
		}
		reverse_proxy %[2]s
	}
	llm_control
	llm_query
	llm_gateway
}`

const day = 24 * time.Hour

// keeper is a provider that keeps batches of two calls, each with one that succeeds, until somebody
// fetches their results.
type keeper struct {
	*httptest.Server
	mu    sync.Mutex
	ended bool     // the batches have ended
	gone  bool     // the provider has no results any more
	asked []string // the GETs with their keys
}

// answers are what the keeper answers, by method and path.
var answers = map[string]string{
	"POST /v1/files":            `{"id":"file-in","object":"file"}`,
	"POST /v1/batches":          `{"id":"batch_1","object":"batch","status":"validating"}`,
	"POST /v1/messages/batches": `{"id":"msgbatch_1","type":"message_batch","processing_status":"in_progress","request_counts":{"succeeded":0}}`,
	"POST /v1/sessions":         `{"id":"sess_1","type":"session","agent":{"model":{"id":"claude-haiku-4-5"}},"status":"idle","usage":{"input_tokens":0,"output_tokens":0}}`,
	"POST /v1/agents/sessions":  `{"id":"as_1","object":"agent.session","agent":{"model":"gpt-5-mini"},"status":"in_progress","usage":null}`,
	"POST /v1beta/models/gemini-2.5-flash:batchGenerateContent": `{"name":"batches/b1","metadata":{"state":"BATCH_STATE_PENDING"}}`,
}

// whileRunning and whenEnded are those to a GET.
var whileRunning = map[string]string{
	"/v1/batches/batch_1":             `{"id":"batch_1","object":"batch","status":"in_progress","request_counts":{"total":2,"completed":1,"failed":0}}`,
	"/v1/messages/batches/msgbatch_1": `{"id":"msgbatch_1","type":"message_batch","processing_status":"in_progress","request_counts":{"succeeded":0}}`,
	"/v1beta/batches/b1":              `{"name":"batches/b1","metadata":{"state":"BATCH_STATE_RUNNING"}}`,
	"/v1/sessions/sess_1": `{"id":"sess_1","type":"session","agent":{"model":{"id":"claude-haiku-4-5"}},"status":"running","usage":{"input_tokens":900,"output_tokens":100,` +
		`"list_cost":{"amount":"2","currency":"USD"}}}`,
	"/v1/agents/sessions/as_1": `{"id":"as_1","object":"agent.session","agent":{"model":"gpt-5-mini"},"status":"in_progress","usage":{"input_tokens":900,"output_tokens":100,"total_tokens":1000}}`,
}

var whenEnded = map[string]string{
	"/v1/batches/batch_1": `{"id":"batch_1","object":"batch","status":"completed","output_file_id":"file-out","error_file_id":"file-err","request_counts":{"total":2,"completed":1,"failed":1}}`,
	"/v1/sessions/sess_1": `{"id":"sess_1","type":"session","agent":{"model":{"id":"claude-haiku-4-5"}},"status":"terminated","usage":{"input_tokens":900,"output_tokens":100,` +
		`"list_cost":{"amount":"2","currency":"USD"}}}`,
	"/v1/agents/sessions/as_1": `{"id":"as_1","object":"agent.session","agent":{"model":"gpt-5-mini"},"status":"idle","usage":{"input_tokens":1800,"output_tokens":200,"total_tokens":2000}}`,
	"/v1/files/file-out/content": `{"id":"r1","custom_id":"0","response":{"status_code":200,"body":{"id":"chatcmpl-1","object":"chat.completion","created":1795000000,"model":"gpt-4o-mini-2024-07-18",` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"the answer"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100}}},"error":null}` + "\n",
	"/v1/files/file-err/content":              `{"id":"r2","custom_id":"1","response":{"status_code":400,"body":{"error":{"message":"no","type":"invalid_request_error"}}},"error":null}` + "\n",
	"/v1/messages/batches/msgbatch_1":         `{"id":"msgbatch_1","type":"message_batch","processing_status":"ended","request_counts":{"succeeded":1,"errored":1}}`,
	"/v1/messages/batches/msgbatch_1/results": batchLines(1) + `{"custom_id":"1","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":"no"}}}}` + "\n",
	"/v1beta/batches/b1": `{"name":"batches/b1","metadata":{"state":"BATCH_STATE_SUCCEEDED"},"done":true,"response":{"inlinedResponses":{"inlinedResponses":[` +
		`{"response":{"candidates":[{"content":{"parts":[{"text":"the answer"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":100,"totalTokenCount":1100},"modelVersion":"gemini-2.5-flash"}},` +
		`{"error":{"code":3,"message":"no"}}]}}}`,
}

func newKeeper(t *testing.T) *keeper {
	k := new(keeper)
	k.Server = httptest.NewServer(k)
	t.Cleanup(k.Close)
	return k
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	k.mu.Lock()
	defer k.mu.Unlock()
	answer, ok := answers[r.Method+" "+r.URL.Path]
	if r.Method == http.MethodGet {
		k.asked = append(k.asked, r.URL.Path+" "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+r.Header.Get("X-Api-Key")+r.Header.Get("X-Goog-Api-Key"))
		states := whileRunning
		if k.ended {
			states = whenEnded
		}
		answer, ok = states[r.URL.Path]
		ok = ok && !k.gone
	}
	w.Header().Set("Content-Type", jsonType)
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		answer = `{"error":{"message":"not found"}}`
	}
	_, _ = io.WriteString(w, answer)
}

// questions are the GETs since the last call of it, sorted.
func (k *keeper) questions() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	asked := k.asked
	k.asked = nil
	slices.Sort(asked)
	return asked
}

// lose makes the provider answer 404, or as before.
func (k *keeper) lose(gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gone = gone
}

// end ends the batches.
func (k *keeper) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
}

// afterStart is the poller of a store after a start of Weir.
func afterStart(s *stores.Store) *recording.Poller {
	return recording.NewPoller(s, new(stores.PollSchedule))
}

// afterReload is the poller of a store after a reload of the configuration.
func afterReload(s *stores.Store) *recording.Poller {
	return recording.NewPoller(s, s.PollSchedule())
}

// poller returns what asks for the batches of the site that runs, at a time from now.
func (s *site) poller(of func(*stores.Store) *recording.Poller) (round func(after time.Duration)) {
	s.t.Helper()
	running, store, err := recording.NewSite(caddy.ActiveContext(), "", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	poller := of(store)
	return func(after time.Duration) {
		s.t.Helper()
		if err := poller.Round(s.t.Context(), running, time.Now().Add(after)); err != nil {
			s.t.Fatal(err)
		}
		s.flush()
	}
}

// richCredits are those of the organisation rich.
func richCredits(t *testing.T) credits.Balance {
	t.Helper()
	_, store, err := llmapp.Use(caddy.ActiveContext(), "")
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := store.Credits()
	if err != nil {
		t.Fatal(err)
	}
	balance, err := ledger.Balance(t.Context(), credits.Hold{Account: credits.Account{Org: "rich"}})
	if err != nil {
		t.Fatal(err)
	}
	return balance
}

// unfetched are the ways to make a batch, with what is asked while it runs, and once it has ended.
var unfetched = map[string]struct {
	create        func(s *site) *http.Response
	running, last []string
}{
	"OpenAI, at the gateway": {func(s *site) *http.Response {
		line := `{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":` + chatCall + `}` + "\n"
		_, answer := s.ask("POST", "/v1/files?provider=openai",
			"--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"+
				fmt.Sprintf(line+line, 0, 1)+"\r\n--b--\r\n", "Authorization", "Bearer weir-rich", "Content-Type", "multipart/form-data; boundary=b")
		resp, _ := s.ask("POST", "/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions"}`, gjson.Get(answer, "id").Str), "Authorization", "Bearer weir-rich")
		return resp
	}, []string{"/v1/batches/batch_1 platform-openai"},
		[]string{"/v1/batches/batch_1 platform-openai", "/v1/files/file-err/content platform-openai", "/v1/files/file-out/content platform-openai"}},
	"Anthropic, at the gateway": {func(s *site) *http.Response {
		resp, _ := s.ask("POST", "/v1/messages/batches", batchOf(2, "claude-haiku-4-5", ""), "X-Api-Key", "weir-rich")
		return resp
	}, []string{"/v1/messages/batches/msgbatch_1 platform-anthropic"},
		[]string{"/v1/messages/batches/msgbatch_1 platform-anthropic", "/v1/messages/batches/msgbatch_1/results platform-anthropic"}},
	"Gemini, at a proxy": {func(s *site) *http.Response {
		resp, _ := s.ask("POST", "/gemini/v1beta/models/gemini-2.5-flash:batchGenerateContent",
			`{"batch":{"inputConfig":{"requests":{"requests":[{"request":`+geminiCall+`},{"request":`+geminiCall+`}]}}}}`, "X-Goog-Api-Key", "weir-rich")
		return resp
	}, []string{"/v1beta/batches/b1 platform-gemini"}, []string{"/v1beta/batches/b1 platform-gemini"}},
	"a client's own key": {func(s *site) *http.Response {
		resp, _ := s.ask("POST", "/own/v1/messages/batches", batchOf(2, "claude-haiku-4-5", ""), "X-Api-Key", "theirs", "Service-Auth", "Bearer weir-rich")
		return resp
	}, nil, nil},
}

// Weir asks for the results of a batch that no client has fetched in a week, with the key of the
// account that created the batch. It records each call once and without content, and the batch has cost
// what its calls have, over restarts.
func TestBatchesThatNobodyFetches(t *testing.T) {
	for name, c := range unfetched {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t)
			s := serveWith(t, unfetchedConfig, k.URL)
			if resp := c.create(s); resp.StatusCode != http.StatusOK {
				t.Fatalf("the batch: %d", resp.StatusCode)
			}
			s.flush()
			held, poller := richCredits(t), s.poller(afterStart)
			if paid := c.last != nil; held.Spent != 0 || (held.Reserved > 0) != paid {
				t.Fatalf("before the end: %+v", held)
			}
			k.questions()
			round := func(when string, poll func(time.Duration), after time.Duration, want []string) {
				t.Helper()
				poll(after)
				if asked := k.questions(); !slices.Equal(asked, want) {
					t.Errorf("%s: the provider was asked for %q, want %q", when, asked, want)
				}
			}
			round("on the same day", poller, time.Hour, nil)
			round("on the sixth day", poller, 6*day, nil)
			round("while it runs", poller, 8*day, c.running)
			round("an hour later", poller, 8*day+time.Hour, nil)
			round("three days later", poller, 11*day, c.running)
			if b := richCredits(t); b != held {
				t.Errorf("while it runs: %+v", b)
			}
			k.end()
			round("after a restart", s.poller(afterStart), 11*day, c.last)
			round("after another", s.poller(afterStart), 20*day, nil)
			_, answer := s.ask("POST", "/v1/request/query", `{"filter":{"request_response_rmt":{"status":{"gte":0}}}}`, "Authorization", "Bearer weir-rich")
			var sum plugins.Nanodollars
			calls := 0
			gjson.Get(answer, "data").ForEach(func(_, r gjson.Result) bool {
				sum += plugins.Nanodollars(r.Get("cost").Num*1e9 + 0.5)
				if r.Get("completion_tokens").Exists() && r.Get("completion_tokens").Type != gjson.Null {
					calls++
				}
				return true
			})
			if b := richCredits(t); c.last != nil && (b.Reserved != 0 || b.Spent != sum || sum == 0 || calls != 1) {
				t.Errorf("in the end: %+v, and %d records cost %s: %s", b, calls, sum, answer)
			}
			if found := s.files("the answer"); len(found) > 0 {
				t.Errorf("the answer is in %q", found)
			}
		})
	}
}

// Weir asks for a session that a client has created with its own key, with the organisation's account at
// the provider, from an hour on and until it has ended: its record has what it has used in all, and its
// state. An end that changes no usage is one, and an idle session has not ended.
func TestSessionsAreAskedFor(t *testing.T) {
	for path, c := range map[string]struct {
		running, last string // tokens, cost and state
		ends          bool
	}{
		"/own/v1/sessions":           {"1000 0.02 running", "1000 0.02 terminated", true},
		"/openai/v1/agents/sessions": {"1000 null ", "2000 null idle", false},
	} {
		t.Run(path, func(t *testing.T) {
			k := newKeeper(t)
			s := serveWith(t, unfetchedConfig, k.URL)
			created := time.Now()
			_, answer := s.ask("POST", path, `{"agent":"agent_1","environment_id":"env_1"}`, "X-Api-Key", "theirs", "Service-Auth", "Bearer weir-rich")
			s.flush()
			_, provider, _ := strings.Cut(path, "/v1/")
			question := []string{"/v1/" + provider + "/" + gjson.Get(answer, "id").Str + " platform-" + map[string]string{"sessions": "anthropic", "agents/sessions": "openai"}[provider]}
			afterEnd := question
			if c.ends {
				afterEnd = nil
			}
			round := s.poller(afterStart)
			for _, step := range []struct {
				after time.Duration
				ends  bool
				want  []string
				used  string
			}{
				{30 * time.Minute, false, nil, ""},
				{61 * time.Minute, false, question, c.running},
				{100 * time.Minute, false, nil, c.running},
				{4 * time.Hour, false, question, c.running},
				{8 * day, true, question, c.last},
				{20 * day, true, afterEnd, c.last},
			} {
				if step.ends {
					k.end()
				}
				round(step.after)
				if asked := k.questions(); !slices.Equal(asked, step.want) {
					t.Errorf("%v after %v: the provider was asked for %q, want %q", step.after, created, asked, step.want)
				}
				_, found := s.ask("POST", "/v1/request/query", `{"filter":{"request_response_rmt":{"request_path":{"contains":"sessions"}}}}`, "Authorization", "Bearer weir-rich")
				r := gjson.Get(found, "data.0")
				if used := r.Get("total_tokens").Raw + " " + r.Get("cost").Raw + " " + r.Get("finish_reason").Str; step.used != "" && used != step.used {
					t.Errorf("after %v, the record has %s, want %s", step.after, used, step.used)
				}
			}
		})
	}
}

// A session that the account cannot see, such as one of another workspace, is seldom asked for, and is no
// warning.
func TestUnseenSessionsAreSeldomAskedFor(t *testing.T) {
	k := newKeeper(t)
	s := serveWith(t, unfetchedConfig, k.URL)
	s.ask("POST", "/own/v1/sessions", `{"agent":"agent_1","environment_id":"env_1"}`, "X-Api-Key", "theirs", "Service-Auth", "Bearer weir-rich")
	s.flush()
	k.lose(true)
	round := s.poller(afterStart)
	for hour := 2; hour < 30*24; hour += 12 {
		round(time.Duration(hour) * time.Hour)
	}
	if n := len(k.questions()); n == 0 || n > 8 {
		t.Errorf("asked for %d times in a month", n)
	}
	if log, err := os.ReadFile(filepath.Join(s.dir, "log")); err != nil || strings.Contains(string(log), "does not state") {
		t.Errorf("logged: %s %v", log, err)
	}
}

// A client that fetches the results leaves nothing to ask for, and results that the provider does not
// have stay set aside.
func TestBatchesThatAreFetchedOrGone(t *testing.T) {
	k := newKeeper(t)
	s := serveWith(t, unfetchedConfig, k.URL)
	_, answer := s.ask("POST", "/v1/messages/batches", batchOf(2, "claude-haiku-4-5", ""), "X-Api-Key", "weir-rich")
	s.flush()
	k.end()
	k.lose(true)
	held := richCredits(t)
	s.poller(afterStart)(8 * day)
	if b := richCredits(t); b != held {
		t.Errorf("without results: %+v, want %+v", b, held)
	}
	if log, err := os.ReadFile(filepath.Join(s.dir, "log")); err != nil || !strings.Contains(string(log), "the provider answered with the status 404") {
		t.Errorf("logged: %s %v", log, err)
	}
	k.lose(false)
	if resp, text := s.ask("GET", "/v1/messages/batches/"+gjson.Get(answer, "id").Str+"/results", "", "X-Api-Key", "weir-rich"); resp.StatusCode != http.StatusOK {
		t.Fatalf("the results: %d %s", resp.StatusCode, text)
	}
	s.flush()
	k.questions()
	s.poller(afterStart)(8 * day)
	if asked := k.questions(); asked != nil {
		t.Errorf("the provider was asked for %q", asked)
	}
}

// After an error of the provider, Weir asks again an hour later, however old the batch is.
func TestBatchesAreAskedForAgainAfterAnError(t *testing.T) {
	k := newKeeper(t)
	s := serveWith(t, unfetchedConfig, k.URL)
	s.ask("POST", "/v1/messages/batches", batchOf(2, "claude-haiku-4-5", ""), "X-Api-Key", "weir-rich")
	s.flush()
	k.end()
	k.lose(true)
	round := s.poller(afterStart)
	round(24 * day)
	k.lose(false)
	round(24*day + time.Hour)
	if b := richCredits(t); b.Reserved != 0 {
		t.Errorf("set aside after %q: %+v", k.questions(), b)
	}
}

// Batches for which a round has no time left are asked for in the next round.
func TestBatchesWaitForTheNextRound(t *testing.T) {
	k := newKeeper(t)
	ctx, stop := context.WithCancel(t.Context())
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			stop()
		}
		k.ServeHTTP(w, r)
	}))
	t.Cleanup(up.Close)
	s := serveWith(t, unfetchedConfig, up.URL)
	unfetched["Anthropic, at the gateway"].create(s)
	unfetched["Gemini, at a proxy"].create(s)
	s.flush()
	running, store, err := recording.NewSite(caddy.ActiveContext(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	poller := afterStart(store)
	if err := poller.Round(ctx, running, time.Now().Add(8*day)); !errors.Is(err, context.Canceled) {
		t.Errorf("the round ended with %v", err)
	}
	k.questions()
	if err := poller.Round(t.Context(), running, time.Now().Add(8*day+time.Minute)); err != nil {
		t.Fatal(err)
	}
	if asked := k.questions(); len(asked) != 2 {
		t.Errorf("the next round asked for %q, want both batches", asked)
	}
}

// A reload does not forget when a batch was asked for.
func TestAReloadDoesNotAskAgain(t *testing.T) {
	k := newKeeper(t)
	s := serveWith(t, unfetchedConfig, k.URL)
	s.ask("POST", "/v1/messages/batches", batchOf(2, "claude-haiku-4-5", ""), "X-Api-Key", "weir-rich")
	s.flush()
	s.poller(afterReload)(8 * day)
	if len(k.questions()) != 1 {
		t.Fatal("the provider was not asked")
	}
	s.load(unfetchedConfig, k.URL)
	s.poller(afterReload)(8*day + time.Minute)
	if asked := k.questions(); len(asked) > 0 {
		t.Errorf("after a reload the provider was asked again for %q", asked)
	}
}

// The results of a batch whose calls Weir could not count are downloaded once.
func TestBatchesOfUnknownCallsAreDownloadedOnce(t *testing.T) {
	k := newKeeper(t)
	s := serveWith(t, unfetchedConfig, k.URL)
	s.ask("POST", "/anthropic/v1/messages/batches", batchOf(2, "claude-new-9", ""), "X-Api-Key", "weir-root")
	s.ask("POST", "/gemini/v1beta/models/gemini-2.5-flash:batchGenerateContent", `{"batch":{"inputConfig":{"requests":{"requests":[{}]}}}}`, "X-Goog-Api-Key", "weir-root")
	s.flush()
	k.end()
	round := s.poller(afterStart)
	for d := range 29 {
		round(time.Duration(d) * day)
	}
	asked := strings.Join(k.questions(), " ")
	if n := strings.Count(asked, "/results"); n != 1 {
		t.Errorf("Anthropic's results were downloaded %d times", n)
	}
	if n := strings.Count(asked, "batches/b1"); n != 1 {
		t.Errorf("Gemini's results were downloaded %d times", n)
	}
}

// If a batch is erased while Weir asks for its results, none of its calls is recorded.
func TestErasedBatchesStayErased(t *testing.T) {
	for _, what := range []string{"record", "identity"} {
		t.Run(what, func(t *testing.T) {
			const query = `{"filter":{"request_response_rmt":{"session_id":{"equals":"eve"}}}}`
			k := newKeeper(t)
			k.end()
			var s *site
			var erase sync.Once
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					erase.Do(func() {
						if resp, text := s.ask("POST", "/v1/erasures", `{"filter":{"request_response_rmt":{"session_id":{"equals":"eve"}}},"what":"`+what+`"}`, "Authorization", "Bearer weir-root"); resp.StatusCode/100 != 2 {
							t.Errorf("the erasure: %d %s", resp.StatusCode, text)
						}
					})
				}
				k.ServeHTTP(w, r)
			}))
			t.Cleanup(up.Close)
			s = serveWith(t, unfetchedConfig, up.URL)
			s.ask("POST", "/anthropic/v1/messages/batches", batchOf(2, "claude-haiku-4-5", ""), "X-Api-Key", "weir-root", "Service-Session-Id", "eve", "Service-User-Id", "eve")
			s.flush()
			s.poller(afterStart)(8 * day)
			if len(k.questions()) == 0 {
				t.Fatal("the provider was not asked")
			}
			for start := time.Now(); ; time.Sleep(10 * time.Millisecond) { // the erasure goes on in the background
				_, found := s.ask("POST", "/v1/request/query", query, "Authorization", "Bearer weir-root")
				if !strings.Contains(found, `"eve"`) {
					break
				}
				if time.Since(start) > 10*time.Second {
					t.Fatalf("erased, and recorded again: %.300s", found)
				}
			}
		})
	}
}
