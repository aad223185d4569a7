//go:build linux

package durability

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// ledger is what the clients of TestKillOfEverything saw acknowledged.
type ledger struct {
	sync.Mutex
	// turns and items are the texts that a conversation must have once, by its path.
	turns, items map[string][]string
	// responses are the answers in the background, by id, and whether one was seen completed.
	responses map[string]bool
	// calls are the users of the calls whose answers came to their ends, or the ids of
	// those that have no user.
	calls []string
	// granted is how many US dollars were granted, and asked how many grants had no answer.
	granted, asked int
}

// TestKillOfEverything kills the process while conversations grow, responses are generated
// in the background, credits are granted and spent, and calls are imported. What a client
// saw acknowledged is there once, and the records cost what is spent, to the nanodollar.
func TestKillOfEverything(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	upstream := httptest.NewServer(http.HandlerFunc(p.answerPrompt))
	t.Cleanup(upstream.Close)
	c := config{site: "llm_gateway\nllm_otlp\nllm_control", llm: fmt.Sprintf(`
		provider echo
		provider anthropic {
			base_url %s
			api_key x
		}
		org payer {
			key payer-key
			credits 100000
			budget all 100000 total
			limit words 1000000000 tokens total
		}`, upstream.URL)}
	began := time.Now()
	seen := ledger{turns: map[string][]string{}, items: map[string][]string{}, responses: map[string]bool{}}
	w.start(c)
	var conversations []string
	for range 4 {
		answer, _, err := w.pays(t.Context(), "POST", "/v1/conversations", `{}`, "")
		if err != nil {
			t.Fatal(err)
		}
		conversations = append(conversations, "/v1/conversations/"+gjson.Get(answer, "id").Str)
	}
	w.kill()
	var files []string
	kills := killings()
	for round := range kills {
		w.start(c)
		w.await("credits can be granted", func() bool { // Caddy names its apps once all have started
			_, err := w.ask("GET", "/llm/credits", "")
			return err == nil
		})
		file, users := rows(t, w, round)
		files = append(files, file)
		seen.calls = append(seen.calls, users...)
		w.loadEverything(p, &seen, conversations, file, 100*time.Millisecond+lifetime())
	}

	w.start(c)
	for _, file := range files { // as the command's help says: import again to continue
		if output, err := w.imports(t.Context(), file); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	}
	for _, path := range conversations {
		w.wantItems(path, append(seen.turns[path], seen.items[path]...))
	}
	for id, completed := range seen.responses {
		w.await("the response "+id+" has ended", func() bool {
			answer, _, err := w.pays(t.Context(), "GET", "/v1/responses/"+id, "", "")
			if err != nil {
				t.Fatal(err)
			}
			status := gjson.Get(answer, "status").Str
			if completed && status != "completed" {
				t.Fatalf("%s was completed and is %s", id, status)
			}
			return status == "completed" || status == "failed"
		})
	}
	w.flush()
	records := w.query("", payer, began.Add(-time.Hour))
	var cost int64 // nanodollars
	var tokens float64
	for _, r := range records {
		if r.Cost != nil && !strings.HasPrefix(r.User, "row-") { // imported calls were paid elsewhere
			cost += nanodollars(*r.Cost)
			if r.PromptTokens != nil && r.CompletionTokens != nil {
				tokens += float64(*r.PromptTokens + *r.CompletionTokens)
			}
		}
	}
	for _, user := range seen.calls {
		if records[user] == nil {
			t.Errorf("the record of %s is lost", user)
		}
	}
	answer, _, err := w.pays(t.Context(), "GET", "/v1/key", "", "")
	if err != nil {
		t.Fatal(err)
	}
	counted := gjson.Get(answer, "data.budgets.0.accounts.0")
	if counted.Get("spent").Num != w.spent("payer") || counted.Get("reserved").Num != 0 || counted.Get("spent").Num == 0 {
		t.Errorf("the budget counts %s, and the credits have spent $%.9f", counted.Raw, w.spent("payer"))
	}
	if spent := nanodollars(w.spent("payer")); spent != cost {
		t.Errorf("the records cost %d, and %d are spent", cost, spent)
	}
	const inFlight, mostTokens = 12, 300_000 // clients that spend, and what a call of theirs can have used
	if words := gjson.Get(answer, "data.budgets.1.accounts.0.spent").Num; words < tokens || words > tokens+float64(mostTokens*inFlight*kills) {
		t.Errorf("the limit counts %.0f tokens, and the records have %.0f", words, tokens)
	}
	if granted := w.grantedTo("payer") - 100000; granted < float64(seen.granted) || granted > float64(seen.granted+seen.asked) {
		t.Errorf("$%g are granted, of which $%d were acknowledged and $%d had no answer", granted, seen.granted, seen.asked)
	}
	w.checkDatabase()
	t.Logf("%d kills: %d records, %d responses, $%d granted, %d calls acknowledged", kills, len(records), len(seen.responses), seen.granted, len(seen.calls))
}

// loadEverything makes calls of all kinds, and kills the process after a while.
func (w *weir) loadEverything(p *provider, seen *ledger, conversations []string, file string, while time.Duration) {
	var killed atomic.Bool
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(w.t.Context(), waitLimit)
	defer cancel()
	repeat := func(do func() error) {
		group.Go(func() {
			for !killed.Load() {
				if err := do(); err != nil && !killed.Load() {
					w.t.Error(err)
					return
				}
			}
		})
	}
	for _, path := range conversations {
		repeat(func() error {
			call := p.call(messages)
			body := fmt.Sprintf(`{"model":"claude-haiku-4-5","input":%q,"conversation":%q}`, call.prompt, strings.TrimPrefix(path, "/v1/conversations/"))
			// The conversation has no user, so that a call of a user would not find it.
			_, id, err := w.pays(ctx, "POST", "/v1/responses", body, "")
			if err == nil {
				seen.Lock()
				defer seen.Unlock()
				seen.turns[path], seen.calls = append(seen.turns[path], call.prompt), append(seen.calls, id)
			}
			return err
		})
		repeat(func() error {
			text := p.call(messages).prompt
			_, _, err := w.pays(ctx, "POST", path+"/items", fmt.Sprintf(`{"items":[{"role":"user","content":%q}]}`, text), "")
			if err == nil {
				seen.Lock()
				defer seen.Unlock()
				seen.items[path] = append(seen.items[path], text)
			}
			return err
		})
	}
	for _, model := range []string{"echo/echo-1", "claude-haiku-4-5"} {
		for range 4 {
			repeat(func() error {
				call := p.call(messages)
				answer, _, err := w.pays(ctx, "POST", "/v1/responses", fmt.Sprintf(`{"model":%q,"input":%q,"background":true}`, model, call.prompt), call.name())
				id, status := gjson.Get(answer, "id").Str, ""
				for err == nil && status != "completed" {
					seen.Lock()
					seen.responses[id] = false
					seen.Unlock()
					answer, _, err = w.pays(ctx, "GET", "/v1/responses/"+id, "", "")
					if status = gjson.Get(answer, "status").Str; status == "failed" {
						return fmt.Errorf("in the background: %s", answer)
					}
				}
				if err == nil {
					seen.Lock()
					defer seen.Unlock()
					seen.responses[id], seen.calls = true, append(seen.calls, call.name())
				}
				return err
			})
		}
	}
	repeat(func() error {
		_, err := w.ask("POST", "/llm/credits", `{"org":"payer","amount":"1"}`)
		seen.Lock()
		defer seen.Unlock()
		if err == nil {
			seen.granted++
		} else {
			seen.asked++
		}
		return err
	})
	group.Go(func() { // the kill may come in the midst of the import
		if output, err := w.imports(ctx, file); err != nil && !killed.Load() {
			w.t.Errorf("%v: %s", err, output)
		}
	})
	time.Sleep(while)
	killed.Store(true)
	w.kill()
	group.Wait()
}

// pays asks for the organisation that pays, and fails unless the answer is 200 and whole.
// id is the record's.
func (w *weir) pays(ctx context.Context, method, path, body, user string) (answer, id string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+w.site+path, strings.NewReader(body))
	if err != nil {
		return "", "", err
	}
	r.Header.Set("Authorization", "Bearer "+payer)
	if user != "" {
		r.Header.Set("Service-User-Id", user)
	}
	response, err := calling.Do(r)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, response.Status, read)
	}
	return string(read), response.Header.Get("Service-Id"), err
}

// rows writes a file of calls that LiteLLM would have exported, and names their users.
func rows(t *testing.T, w *weir, round int) (file string, users []string) {
	var text strings.Builder
	for i := range rounds(1000, 2000) {
		user := fmt.Sprintf("row-%d-%d", round, i)
		users = append(users, user)
		at := time.Now().UTC().Add(time.Duration(i) * time.Millisecond).Format(time.RFC3339Nano)
		_ = json.NewEncoder(&text).Encode(map[string]any{
			"request_id": user, "call_type": "acompletion", "model": "gpt-4o-mini", "custom_llm_provider": "openai",
			"startTime": at, "endTime": at, "end_user": user, "status": "success", "spend": 0.001,
			"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
		})
	}
	file = filepath.Join(w.dir, fmt.Sprintf("rows-%d.jsonl", round))
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, users
}

// imports runs weir import.
func (w *weir) imports(ctx context.Context, file string) ([]byte, error) {
	command := exec.CommandContext(ctx, w.program, "import", "litellm", file, "--address", "http://"+w.site)
	command.Env = append(os.Environ(), asWeir+"=1", "WEIR_API_KEY="+payer)
	return command.CombinedOutput()
}

// wantItems fails unless a conversation has each text once, and no other text twice.
func (w *weir) wantItems(path string, texts []string) {
	w.t.Helper()
	count := map[string]int{}
	for after := ""; ; {
		answer, _, err := w.pays(w.t.Context(), "GET", path+"/items?order=asc&limit=100&after="+url.QueryEscape(after), "", "")
		if err != nil {
			w.t.Fatal(err)
		}
		for _, item := range gjson.Get(answer, "data").Array() {
			if item.Get("role").Str == "user" {
				count[item.Get("content.0.text").Str]++
			}
		}
		if after = gjson.Get(answer, "last_id").Str; !gjson.Get(answer, "has_more").Bool() {
			break
		}
	}
	for text, n := range count {
		if n > 1 {
			w.t.Errorf("%s has %q %d times", path, text, n)
		}
	}
	for _, text := range texts {
		if count[text] == 0 {
			w.t.Errorf("%s lost %q", path, text)
		}
	}
	w.t.Logf("%s: %d texts acknowledged, %d there", path, len(texts), len(count))
}

func nanodollars(dollars float64) int64 { return int64(math.Round(dollars * 1e9)) }

// grantedTo returns the US dollars that an organisation has been granted.
func (w *weir) grantedTo(org string) float64 {
	w.t.Helper()
	answer, err := w.ask("GET", "/llm/credits", "")
	if err != nil {
		w.t.Fatal(err)
	}
	return gjson.GetBytes(answer, fmt.Sprintf("#(org==%q).granted", org)).Num
}
