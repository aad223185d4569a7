package standard

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// paidConfig is a site whose callers have keys of Weir alone: its folder, its provider, and
// its port.
const paidConfig = `{
	admin off
	persist_config off
	auto_https off
	log {
		output file %[1]s/log
		format llm
	}
	llm {
		store sqlite %[1]s/weir.db
		key weir-root gateway query admin
		key weir-log log
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
		provider azure {
			base_url %[2]s/openai/v1
			api_key platform-azure
		}
		org acme {
			key weir-acme
			provider anthropic {
				api_key acme-anthropic
			}
		}
		org rich {
			key weir-rich
			credits 1
		}
		org solvent {
			key weir-solvent
			credits 2
		}
	}
}
http://127.0.0.1:%[3]s {
	bind 127.0.0.1
	log
	handle_path /openai/* {
		llm_proxy openai {
			credentials platform
		}
	}
	handle_path /anthropic/* {
		llm_proxy anthropic {
			credentials platform
		}
	}
	handle_path /gemini/* {
		llm_proxy gemini {
			credentials platform
		}
	}
	handle_path /azure/* {
		llm_proxy azure {
			credentials platform
		}
	}
	llm_control
	llm_query
}`

// payer is a provider that keeps the last request that it got.
type payer struct {
	*httptest.Server
	mu     sync.Mutex
	asked  int
	last   *http.Request
	refuse bool // the key
}

func newPayer(t *testing.T) *payer {
	p := new(payer)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		last := r.Clone(r.Context()) // the server looks at the body of its own
		last.Body = io.NopCloser(bytes.NewReader(body))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked, p.last = p.asked+1, last
		w.Header().Set("Openai-Organization", "the-platform")
		w.Header().Set("Content-Type", jsonType)
		if p.refuse {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided: platform-o***ai"}}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"id":"resp_%d","object":"response","model":"gpt-4o-mini","status":"completed","output":[],"choices":[],
			"usage":{"prompt_tokens":1000,"completion_tokens":1000,"input_tokens":1000,"output_tokens":1000,"total_tokens":2000}}`, p.asked)
	}))
	t.Cleanup(p.Close)
	return p
}

// got is the last request, written out, and how many there were.
func (p *payer) got() (last *http.Request, text string, asked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return &http.Request{Header: make(http.Header)}, "", 0
	}
	var b bytes.Buffer
	_ = p.last.Header.Write(&b)
	body, _ := io.ReadAll(p.last.Body)
	p.last.Body = io.NopCloser(bytes.NewReader(body))
	return p.last, p.last.RequestURI + "\n" + b.String() + string(body), p.asked
}

func servePaid(t *testing.T) (*site, *payer) {
	t.Helper()
	p := newPayer(t)
	return serveWith(t, paidConfig, p.URL), p
}

// serveWith serves a Caddyfile with a provider at an address.
func serveWith(t *testing.T, config, provider string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	s.load(config, provider)
	return s
}

// ask sends a call with the header, and no key beside it.
func (s *site) ask(method, path, body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", jsonType)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(text)
}

const (
	chatCall     = `{"model":"gpt-4o-mini","max_tokens":16,"messages":[{"role":"user","content":"hi"}]}`
	responseCall = `{"model":"gpt-4o-mini","max_output_tokens":16,"input":"hi"}`
	geminiPath   = "/gemini/v1beta/models/gemini-2.5-flash:generateContent"
	geminiCall   = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
)

// Clients send the key of Weir where their libraries send that of the vendor. The provider gets
// that of the account in the vendor's field, and nothing of Weir's.
func TestKeysOfWeirPay(t *testing.T) {
	s, p := servePaid(t)
	for name, c := range map[string]struct {
		path, body  string
		header      []string
		field, want string // at the provider
	}{
		"OpenAI":              {"/openai/v1/chat/completions", chatCall, []string{"Authorization", "Bearer weir-root"}, "Authorization", "Bearer platform-openai"},
		"a control header":    {"/openai/v1/responses", responseCall, []string{"Service-Auth", "Bearer weir-root", "Authorization", "Bearer other"}, "Authorization", "Bearer platform-openai"},
		"Anthropic":           {"/anthropic/v1/messages?beta=true", chatCall, []string{"X-Api-Key", "weir-root", "Anthropic-Version", "2023-06-01"}, "X-Api-Key", "platform-anthropic"},
		"Claude Code":         {"/anthropic/v1/messages/count_tokens", chatCall, []string{"Authorization", "Bearer weir-root"}, "X-Api-Key", "platform-anthropic"},
		"an organisation":     {"/anthropic/v1/messages", chatCall, []string{"X-Api-Key", "weir-acme"}, "X-Api-Key", "acme-anthropic"},
		"Gemini":              {geminiPath, geminiCall, []string{"X-Goog-Api-Key", "weir-root"}, "X-Goog-Api-Key", "platform-gemini"},
		"Gemini, in the path": {geminiPath + "?alt=sse&key=weir-root", geminiCall, nil, "X-Goog-Api-Key", "platform-gemini"},
		"Gemini, express":     {strings.Replace(geminiPath, "v1beta/", "v1beta1/publishers/google/", 1), geminiCall, []string{"X-Goog-Api-Key", "weir-root"}, "X-Goog-Api-Key", "platform-gemini"},
		"Azure":               {"/azure/openai/v1/chat/completions", chatCall, []string{"Api-Key", "weir-root"}, "Api-Key", "platform-azure"},
	} {
		header := append(c.header, "Cookie", "a=weir-root", "X-Goog-User-Project", "theirs", "Chatgpt-Account-Id", "theirs")
		resp, answer := s.ask("POST", c.path, c.body, header...)
		got, text, _ := p.got()
		if resp.StatusCode != http.StatusOK || got.Header.Get(c.field) != c.want || !strings.HasSuffix(text, c.body) {
			t.Errorf("%s: %d %s; the provider got %s", name, resp.StatusCode, answer, text)
		}
		for _, foreign := range []string{"weir-", "theirs", "Service-", "other"} {
			if strings.Contains(text, foreign) {
				t.Errorf("%s: the provider got %q: %s", name, foreign, text)
			}
		}
		if want, _, _ := strings.Cut(strings.SplitN(c.path, "/", 3)[2], "?"); got.URL.Path != "/"+want || got.Host != strings.TrimPrefix(p.URL, "http://") {
			t.Errorf("%s: %s at %s", name, got.URL, got.Host)
		}
		if resp.Header.Get("Openai-Organization") != "" {
			t.Errorf("%s: the answer tells whose account it is", name)
		}
	}
	if resp, answer := s.ask("GET", "/openai/v1/models", "", "Authorization", "Bearer weir-root"); resp.StatusCode != http.StatusOK {
		t.Errorf("a list of models: %d %s", resp.StatusCode, answer)
	}
	s.flush()
	for _, secret := range []string{"weir-root", "weir-acme", "platform-", "acme-anthropic"} {
		if found := s.files(secret); len(found) > 0 {
			t.Errorf("%s is in %q", secret, found)
		}
	}
}

// Nothing but calls of those who may make them is paid for.
func TestWhatIsNotPaid(t *testing.T) {
	s, p := servePaid(t)
	root := []string{"Authorization", "Bearer weir-root"}
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		code               string
	}{
		"no key":                   {"POST", "/openai/v1/chat/completions", chatCall, nil, 401, "missing_api_key"},
		"an unknown key":           {"POST", "/openai/v1/chat/completions", chatCall, []string{"Authorization", "Bearer sk-proj-1"}, 401, "invalid_api_key"},
		"a key to record":          {"POST", "/openai/v1/chat/completions", chatCall, []string{"Authorization", "Bearer weir-log"}, 403, "insufficient_scope"},
		"another first":            {"POST", "/openai/v1/chat/completions", chatCall, append(root, "Service-Auth", "Bearer no"), 401, "invalid_api_key"},
		"files":                    {"GET", "/openai/v1/files", "", root, 403, "not_payable"},
		"a file":                   {"POST", "/openai/v1/files", "{}", root, 403, "not_payable"},
		"a batch":                  {"POST", "/openai/v1/batches", "{}", root, 403, "not_payable"},
		"a response":               {"GET", "/openai/v1/responses/resp_1", "", root, 403, "not_payable"},
		"a deletion":               {"DELETE", "/openai/v1/models/ft:theirs", "", root, 403, "not_payable"},
		"administration":           {"POST", "/openai/v1/organization/admin_api_keys", "{}", root, 403, "not_payable"},
		"a run":                    {"POST", "/openai/v1/threads/thread_1/runs", "{}", root, 403, "not_payable"},
		"a WebSocket":              {"GET", "/openai/v1/realtime?model=gpt-realtime", "", append(root, "Connection", "Upgrade", "Upgrade", "websocket"), 403, "not_payable"},
		"a WebSocket of models":    {"GET", "/openai/v1/models", "", append(root, "Connection", "Upgrade", "Upgrade", "websocket"), 403, "not_payable"},
		"a hidden slash":           {"POST", "/openai/v1/files%2fa/chat/completions", chatCall, root, 403, "not_payable"},
		"a model in the path":      {"POST", "/openai/v1/serving-endpoints/gpt-5-pro/chat/completions", chatCall, root, 403, "not_payable"},
		"a model before the path":  {"POST", "/openai/gpt-5-pro/v1/chat/completions", chatCall, root, 403, "not_payable"},
		"a tuned model":            {"POST", "/gemini/v1beta/tunedModels/gemini-2.5-flash:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`, root, 403, ""},
		"a coded path":             {"POST", "/openai/v1/files%3f/chat/completions", chatCall, root, 403, "not_payable"},
		"no JSON":                  {"POST", "/openai/v1/chat/completions", `{"model":`, root, 400, ""},
		"no object":                {"POST", "/openai/v1/chat/completions", `[1]`, root, 400, ""},
		"a coded body":             {"POST", "/openai/v1/chat/completions", chatCall, append(root, "Content-Encoding", "gzip"), 415, ""},
		"in the background":        {"POST", "/openai/v1/responses", `{"model":"gpt-4o-mini","input":"a","background":false,"background":true}`, root, 400, "unsupported_parameter"},
		"another's response":       {"POST", "/openai/v1/responses", `{"model":"gpt-4o-mini","input":"a","previous_response_id":"resp_9"}`, root, 400, "previous_response_not_found"},
		"a second response":        {"POST", "/openai/v1/responses", `{"model":"gpt-4o-mini","input":"a","previous_response_id":null,"previous_response_id":"resp_9"}`, root, 400, "previous_response_not_found"},
		"another's conversation":   {"POST", "/openai/v1/responses", `{"model":"gpt-4o-mini","input":"a","conversation":"conv_1"}`, root, 400, "unsupported_parameter"},
		"another's prompt":         {"POST", "/openai/v1/responses", `{"model":"gpt-4o-mini","prompt":{"id":"pmpt_1"}}`, root, 400, "unsupported_parameter"},
		"another's item":           {"POST", "/openai/v1/responses", `{"model":"gpt-4o-mini","input":[{"type":"item_reference","id":"msg_1"}]}`, root, 400, "unsupported_parameter"},
		"another's file":           {"POST", "/openai/v1/responses", `{"model":"gpt-4o-mini","input":[{"role":"user","content":[{"type":"input_file","file\u005fid":"file-1"}]}]}`, root, 400, "unsupported_parameter"},
		"another's vector store":   {"POST", "/openai/v1/responses", `{"model":"gpt-4o-mini","input":"a","tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}`, root, 400, "unsupported_parameter"},
		"another's container":      {"POST", "/anthropic/v1/messages", `{"model":"claude-haiku-4-5","max_tokens":1,"messages":[],"container":"container_1"}`, root, 400, ""},
		"another's thread":         {"POST", "/anthropic/v1/messages", `{"model":"claude-haiku-4-5","max_tokens":1,"messages":[],"thread":{"id":"t"}}`, root, 400, ""},
		"another's message":        {"POST", "/anthropic/v1/messages", `{"model":"claude-haiku-4-5","max_tokens":1,"messages":[],"thread":{"type":"continue","previous_message_id":"msg_9"}}`, root, 400, ""},
		"another's diagnosis":      {"POST", "/anthropic/v1/messages", `{"model":"claude-haiku-4-5","max_tokens":1,"messages":[],"diagnostics":{"previous_message_id":"msg_9"}}`, root, 400, ""},
		"another's search store":   {"POST", geminiPath, `{"contents":[],"tools":[{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/1"]}}]}`, root, 400, ""},
		"another's engine":         {"POST", geminiPath, `{"contents":[],"tools":[{"retrieval":{"vertex_ai_search":{"engine":"projects/1"}}}]}`, root, 400, ""},
		"another's cache":          {"POST", geminiPath, `{"contents":[],"cachedContent":"cachedContents/1"}`, root, 400, ""},
		"another's cached_content": {"POST", geminiPath, `{"contents":[],"cached_content":"cachedContents/1"}`, root, 400, ""},
		"another's upload":         {"POST", geminiPath, `{"contents":[{"parts":[{"file_data":{"file_uri":"https://generativelanguage.googleapis.com/v1beta/files/1"}}]}]}`, root, 400, ""},
		"another's bucket":         {"POST", geminiPath, `{"contents":[{"parts":[{"fileData":{"fileUri":"gs://theirs/1"}}]}]}`, root, 400, ""},
	} {
		resp, answer := s.ask(c.method, c.path, c.body, c.header...)
		if code := gjson.Get(answer, "error.code").String(); resp.StatusCode != c.status || c.code != "" && code != c.code {
			t.Errorf("%s: %d %s", name, resp.StatusCode, answer)
		}
	}
	if _, text, asked := p.got(); asked != 0 {
		t.Errorf("the provider got %d calls, at last %s", asked, text)
	}
}

// What a caller names at the provider is bound to the caller's organisation.
func TestWhatIsBoundToTheOrganisation(t *testing.T) {
	s, p := servePaid(t)
	idempotency := make(map[string]string)
	for _, key := range []string{"weir-root", "weir-rich"} {
		resp, answer := s.ask("POST", "/openai/v1/responses", responseCall, "Authorization", "Bearer "+key, "Idempotency-Key", "once", "Openai-Organization", "org-theirs", "Openai-Project", "proj_theirs")
		got, text, _ := p.got()
		idempotency[key] = got.Header.Get("Idempotency-Key")
		warned := strings.Join(resp.Header.Values("Service-Warnings"), " ")
		if resp.StatusCode != http.StatusOK || strings.Contains(text, "theirs") || !strings.Contains(warned, "Openai-Organization") || !strings.Contains(warned, "Openai-Project") {
			t.Errorf("%s: %d %s %s; the provider got %s", key, resp.StatusCode, warned, answer, text)
		}
		s.flush()
		next := `{"model":"gpt-4o-mini","max_output_tokens":16,"input":"hi","previous_response_id":"` + gjson.Get(answer, "id").Str + `"}`
		for _, other := range []string{"weir-root", "weir-rich"} {
			resp, answer := s.ask("POST", "/openai/v1/responses", next, "Authorization", "Bearer "+other)
			if (resp.StatusCode == http.StatusOK) != (other == key) {
				t.Errorf("%s goes on from a response of %s: %d %s", other, key, resp.StatusCode, answer)
			}
		}
	}
	if a, b := idempotency["weir-root"], idempotency["weir-rich"]; a == b || a == "" || a == "once" || b == "once" {
		t.Errorf("the keys of repetitions are %q and %q", a, b)
	}
}

// A key calls the models and the providers that it may, whichever field or path names them.
func TestModelsOfKeys(t *testing.T) {
	s, p := servePaid(t)
	made := func(more string) string {
		resp, answer := s.ask("POST", "/v1/keys", `{"name":"a","scopes":["gateway"],`+more+`}`, "Authorization", "Bearer weir-root")
		secret := gjson.Get(answer, "data.secret").Str
		if secret == "" {
			t.Fatalf("%d %s", resp.StatusCode, answer)
		}
		return secret
	}
	models, providers := made(`"models":["gpt-4o-mini","gemini/gemini-2.5-*"]`), made(`"providers":["openai"]`)
	for name, c := range map[string]struct {
		key, path, body string
		ok              bool
	}{
		"the model":              {models, "/openai/v1/chat/completions", chatCall, true},
		"another model":          {models, "/openai/v1/chat/completions", strings.Replace(chatCall, "gpt-4o-mini", "gpt-4o", 1), false},
		"no model":               {models, "/openai/v1/chat/completions", `{"messages":[]}`, false},
		"two models":             {models, "/openai/v1/chat/completions", `{"model":"gpt-4o-mini","model":"gpt-4o","messages":[]}`, false},
		"fallbacks":              {models, "/openai/v1/chat/completions", `{"model":"gpt-4o-mini","models":["gpt-4o"],"messages":[]}`, false},
		"a tool's model":         {models, "/openai/v1/responses", `{"model":"gpt-4o-mini","input":"a","tools":[{"type":"image_generation","model":"gpt-image-1"}]}`, false},
		"the model in the path":  {models, geminiPath, geminiCall, true},
		"another in the path":    {models, "/gemini/v1beta/models/gemini-3-pro:generateContent", `{"model":"gemini-2.5-flash","contents":[]}`, false},
		"another in an old path": {models, "/openai/v1/engines/gpt-4o/completions", `{"model":"gpt-4o-mini","prompt":"a"}`, false},
		"an agent's model":       {models, "/openai/v1/agents/completions", `{"model":"gpt-4o-mini","agent_id":"ag_1","messages":[]}`, false},
		"a list of models":       {models, "/openai/v1/models", "", false},
		"the provider":           {providers, "/openai/v1/chat/completions", chatCall, true},
		"another provider":       {providers, "/anthropic/v1/messages", chatCall, false},
		"a list of the provider": {providers, "/openai/v1/models", "", true},
		"a list of another":      {providers, "/gemini/v1beta/models", "", false},
	} {
		method := "POST"
		if c.body == "" {
			method = "GET"
		}
		_, _, before := p.got()
		resp, answer := s.ask(method, c.path, c.body, "Authorization", "Bearer "+c.key)
		_, _, after := p.got()
		if (resp.StatusCode == http.StatusOK) != c.ok || (after > before) != c.ok {
			t.Errorf("%s: %d %s", name, resp.StatusCode, answer)
		}
	}
}

// Credits pay for the calls of an organisation that has them, whatever a call says of itself.
func TestCreditsPayForProxiedCalls(t *testing.T) {
	s, p := servePaid(t)
	spent := func() float64 {
		_, answer := s.ask("GET", "/v1/key", "", "Authorization", "Bearer weir-rich")
		return gjson.Get(answer, "data.credits.spent").Float()
	}
	const price = 0.00075 // of 1,000 tokens in and out
	for i, header := range [][]string{nil, {"Chatgpt-Account-Id", "a"}, {"Service-Model-Override", "gpt-4.1-nano"}} {
		resp, answer := s.ask("POST", "/openai/v1/chat/completions", strings.Replace(chatCall, "16", "1000", 1), append(header, "Authorization", "Bearer weir-rich")...)
		if got, want := spent(), price*float64(i+1); resp.StatusCode != http.StatusOK || got < want*0.99 || got > want*1.01 {
			t.Errorf("%q: %d, %v of %v is spent: %s", header, resp.StatusCode, got, want, answer)
		}
	}
	dear := strings.Replace(chatCall, `"max_tokens":16`, `"n":128,"max_tokens":16000`, 1)
	_, _, before := p.got()
	resp, answer := s.ask("POST", "/openai/v1/chat/completions", dear, "Authorization", "Bearer weir-rich")
	if _, _, after := p.got(); resp.StatusCode != http.StatusPaymentRequired || after != before {
		t.Errorf("a call that costs more than is left: %d %s", resp.StatusCode, answer)
	}
	s.flush()
	_, answer = s.ask("POST", "/v1/request/query", `{"filter":"all"}`, "Authorization", "Bearer weir-rich")
	if got := gjson.Get(answer, "data.3"); !got.Get("is_passthrough_billing").Bool() || got.Get("provider").Str != "openai" || !strings.HasPrefix(got.Get("target_url").Str, p.URL) {
		t.Errorf("the record of a call that credits paid is %s", cmp.Or(got.Raw, answer))
	}
}

// A provider that refuses the platform's credentials is not the caller's fault, and the caller
// learns nothing of them.
func TestRefusedCredentials(t *testing.T) {
	s, p := servePaid(t)
	p.refuse = true
	for key, want := range map[string]int{"weir-root": http.StatusBadGateway, "weir-acme": http.StatusUnauthorized} {
		resp, answer := s.ask("POST", "/anthropic/v1/messages", chatCall, "X-Api-Key", key)
		if resp.StatusCode != want || want == http.StatusBadGateway && strings.Contains(answer, "platform-") {
			t.Errorf("%s: %d %s", key, resp.StatusCode, answer)
		}
	}
}

// Gemini's candidates are answers too, however a request asks for them.
func TestCreditsBoundCandidates(t *testing.T) {
	s, p := servePaid(t)
	for name, c := range map[string]struct {
		more string
		ok   bool
	}{
		"one answer":     {`"generationConfig":{"temperature":0}`, true},
		"candidates":     {`"generationConfig":{"candidateCount":100}`, false},
		"as proto":       {`"generation_config":{"candidate_count":100}`, false},
		"as a text":      {`"generationConfig":{"candidateCount":"100"}`, false},
		"twice":          {`"generationConfig":{"candidateCount":1,"candidate_count":100}`, false},
		"in both":        {`"generationConfig":{"candidateCount":1},"generation_config":{"candidateCount":100}`, false},
		"more than many": {`"generationConfig":{"candidateCount":9223372036854775807}`, false},
	} {
		_, _, before := p.got()
		resp, answer := s.ask("POST", geminiPath, `{"contents":[{"parts":[{"text":"hi"}]}],`+c.more+`}`, "X-Goog-Api-Key", "weir-solvent")
		if _, _, after := p.got(); (resp.StatusCode == http.StatusOK) != c.ok || (after > before) != c.ok {
			t.Errorf("%s: %d %s", name, resp.StatusCode, answer)
		}
	}
}

// A caller cannot have the provider leave the usage, or a part of it, out of its answer.
func TestParametersThatAProviderGets(t *testing.T) {
	s, p := servePaid(t)
	query := "?alt=sse&beta=true&fields=candidates,usageMetadata(promptTokenCount,candidatesTokenCount)&%24fields=candidates&quotaUser=theirs&api_key=weir-solvent"
	resp, answer := s.ask("POST", geminiPath+query, geminiCall, "X-Goog-Api-Key", "weir-solvent")
	got, _, _ := p.got()
	if resp.StatusCode != http.StatusOK || got.URL.RawQuery != "alt=sse&beta=true" || !strings.Contains(resp.Header.Get("Service-Warnings"), "query: left out") {
		t.Errorf("%d %s; the provider got %q; the caller was told %q", resp.StatusCode, answer, got.URL.RawQuery, resp.Header["Service-Warnings"])
	}
}

// What follows a body is a header, too.
func TestNoTrailersReachAProvider(t *testing.T) {
	s, p := servePaid(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/openai/v1/chat/completions", io.MultiReader(strings.NewReader(chatCall)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer weir-rich")
	r.Trailer = http.Header{"Openai-Organization": {"theirs"}, "Authorization": {"Bearer weir-rich"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _, asked := p.got(); resp.StatusCode != http.StatusOK || asked != 1 || len(got.Trailer) > 0 {
		t.Errorf("%s; the provider got %v", resp.Status, got.Trailer)
	}
}

// What comes before and after an answer tells no more than the header does.
func TestNoAnswerTellsWhoseAccount(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Openai-Organization", "the-platform")
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "Openai-Organization, X-Checksum")
		_, _ = io.WriteString(w, "{}")
		w.Header().Set("X-Checksum", "whole")
		w.Header().Set(http.TrailerPrefix+"Openai-Project", "the-platform")
	}))
	t.Cleanup(provider.Close)
	s := serveWith(t, paidConfig, provider.URL)
	host := strings.TrimPrefix(s.url, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer weir-rich\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		host, len(chatCall), chatCall)
	answer, err := io.ReadAll(conn)
	if err != nil || bytes.Contains(answer, []byte("the-platform")) {
		t.Errorf("%s, %v", answer, err)
	}
	for _, passes := range []string{"HTTP/1.1 103 ", "</style.css>", "HTTP/1.1 200 ", "X-Checksum: whole"} {
		if !bytes.Contains(answer, []byte(passes)) {
			t.Errorf("the client did not get %q: %s", passes, answer)
		}
	}
}
