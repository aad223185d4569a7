package standard

import (
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/stores"
)

// interleavings is how many calls TestCachedAnswersAreThoseOfTheProvider makes:
//
//	go test -run TestCachedAnswers ./modules/standard -interleavings 10000
var interleavings = flag.Int("interleavings", 400, "calls through the cache")

// cachedConfig is a site of two organisations with each lane: its folder, its provider, and its
// port.
const cachedConfig = `{
	admin off
	persist_config off
	auto_https off
	llm {
		store sqlite %[1]s/weir.db
		org a {
			key weir-a
			key weir-a-query query
			provider openai {
				base_url %[2]s/v1
				api_key account-a
			}
			provider gemini {
				base_url %[2]s
				api_key account-a
			}
			provider mistral {
				base_url %[2]s/v1
				api_key account-a
			}
		}
		org b {
			key weir-b
			provider openai {
				base_url %[2]s/v1
				api_key account-b
			}
		}
		org limited {
			key weir-limited
			key weir-limited-query query
			limit pace 3 requests
			provider openai {
				base_url %[2]s/v1
				api_key account-limited
			}
		}
	}
}
http://127.0.0.1:%[3]s {
	bind 127.0.0.1
	handle_path /own/* {
		llm_proxy openai %[2]s {
			require_key
		}
	}
	handle_path /paid/* {
		llm_proxy openai {
			credentials platform
		}
	}
	handle_path /query/* {
		llm_query
	}
	llm_gateway {
		retries 0
	}
}`

// cachedLane is a way to the provider: its path, the prefix of the model, and the dialect.
type cachedLane struct{ name, path, model, body string }

const (
	chatQuestion     = `{"model":"%s","messages":[{"role":"user","content":"%s"}]%s}`
	messagesQuestion = `{"model":"%s","max_tokens":100,"messages":[{"role":"user","content":"%s"}]%s}`
	responsesCall    = `{"model":"%s","store":false,"input":"%s"%s}`
)

var cachedLanes = []cachedLane{
	{"own", "/own/v1/chat/completions", "gpt-5-nano", chatQuestion},
	{"paid", "/paid/v1/chat/completions", "gpt-5-nano", chatQuestion},
	{"paid responses", "/paid/v1/responses", "gpt-5-nano", responsesCall},
	{"native", "/v1/chat/completions", "openai/gpt-5-nano", chatQuestion},
	{"translated", "/v1/messages", "openai/gpt-5-nano", messagesQuestion},
}

// answering is a provider whose answers differ, and say who asked for what.
type answering struct {
	asked atomic.Int64
	mu    sync.Mutex
	given map[string]string // by the number of the answer: who asked for what
	whole map[string]string // by the number of the answer: its bytes, if it came to its end
	next  func(n int64) string
	hold  chan struct{} // answers wait until it is closed, unless it is nil
	came  chan struct{} // gets a call that waits
	url   string
}

func (p *answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	n := p.asked.Add(1)
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer account-")
	question := regexp.MustCompile(`question-\d+`).FindString(string(body))
	text := fmt.Sprintf("answer %d to %s of %s", n, question, who)
	p.mu.Lock()
	p.given[strconv.FormatInt(n, 10)] = question + " of " + who
	fate := ""
	if p.next != nil {
		fate = p.next(n)
	}
	p.mu.Unlock()
	if p.hold != nil {
		p.came <- struct{}{}
		select {
		case <-p.hold:
		case <-r.Context().Done():
			return
		}
	}
	switch fate {
	case "no-store":
		w.Header().Set("Cache-Control", "private, No-Store")
	case "refuse":
		http.Error(w, `{"error":{"message":"`+text+`","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	case "fail":
		http.Error(w, `{"error":{"message":"`+text+`","type":"server_error"}}`, http.StatusInternalServerError)
		return
	}
	stream := gjson.GetBytes(body, "stream").Bool()
	answer := answerOf(text, strings.HasSuffix(r.URL.Path, "/responses"), stream)
	if fate == "break" {
		answer = answer[:len(answer)*2/3]
	} else {
		p.mu.Lock()
		p.whole[strconv.FormatInt(n, 10)] = answer
		p.mu.Unlock()
	}
	w.Header().Set("Content-Type", jsonType)
	if stream {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, answer)
		_ = z.Flush()
		if fate == "break" {
			panic(http.ErrAbortHandler)
		}
		_ = z.Close()
		return
	}
	for piece := range strings.SplitAfterSeq(answer, "\n\n") {
		_, _ = io.WriteString(w, piece)
		w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's
	}
	if fate == "break" {
		panic(http.ErrAbortHandler)
	}
}

// answerOf is an answer of Responses, or of Chat Completions.
func answerOf(text string, responses, stream bool) string {
	const usage = `"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}`
	switch {
	case responses:
		said := strings.ReplaceAll(answered(message, statedUsage), `"hello"`, `"`+text+`"`)
		if !stream {
			return said
		}
		return strings.ReplaceAll(begun, `"hello"`, `"`+text+`"`) + eventsOf(`{"type":"response.completed","sequence_number":4,"response":`+said+`}`)
	case !stream:
		return `{"id":"c","object":"chat.completion","created":1,"model":"gpt-5-nano","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}],` + usage + `}`
	}
	return eventsOf(
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-5-nano","choices":[{"index":0,"delta":{"role":"assistant","content":"`+text+`"},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-5-nano","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],`+usage+`}`,
		"[DONE]")
}

func newAnswering(t *testing.T) (*answering, *site) {
	t.Helper()
	p := &answering{given: map[string]string{}, whole: map[string]string{}, came: make(chan struct{}, 100)}
	provider := httptest.NewServer(p)
	t.Cleanup(provider.Close)
	p.url = provider.URL
	return p, serveWith(t, cachedConfig, provider.URL)
}

// request is a call of an organisation in a lane.
func (l *cachedLane) request(s *site, org, question, fields string, header ...string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, s.url+l.path, strings.NewReader(fmt.Sprintf(l.body, l.model, question, fields)))
	if err != nil {
		s.t.Error(err)
		return nil
	}
	r.Header.Set("Content-Type", jsonType)
	r.Header.Set("Authorization", "Bearer weir-"+org)
	if l.name == "own" {
		r.Header.Set("Service-Auth", "Bearer weir-"+org)
		r.Header.Set("Authorization", "Bearer account-"+org)
	}
	r.Header.Set("Service-Cache-Enabled", "true")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// heardBack is what a client has got.
type heardBack struct {
	status int
	cache  string
	header http.Header
	body   string
	err    error
}

var plainClient = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}}

func listen(r *http.Request) (h heardBack) {
	resp, err := plainClient.Do(r)
	if err != nil {
		return heardBack{err: err}
	}
	defer resp.Body.Close()
	var body io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return heardBack{err: err}
		}
		body = z
	}
	text, err := io.ReadAll(body)
	return heardBack{resp.StatusCode, resp.Header.Get("Service-Cache"), resp.Header, string(text), err}
}

var numbered = regexp.MustCompile(`answer (\d+) to (question-\d+ of [a-z]+)`)

// Whoever asks what and when, and whatever becomes of the calls that lead: each client gets what
// the provider has answered to its request and its organisation, in all its bytes.
func TestCachedAnswersAreThoseOfTheProvider(t *testing.T) {
	p, s := newAnswering(t)
	p.next = func(int64) string {
		return [...]string{"", "", "", "", "", "", "refuse", "fail", "break", "break"}[rand.IntN(10)]
	}
	var hits, led atomic.Int64
	streams := []string{"", `,"stream":true`}
	var calls sync.WaitGroup
	work := make(chan int)
	for range 16 {
		calls.Go(func() {
			for range work {
				lane := &cachedLanes[rand.IntN(len(cachedLanes))]
				org, question, stream := [...]string{"a", "b"}[rand.IntN(2)], fmt.Sprintf("question-%d", rand.IntN(4)), rand.IntN(2)
				r := lane.request(s, org, question, streams[stream])
				switch rand.IntN(10) {
				case 0:
					r.Header.Set("Cache-Control", "max-age=0")
				case 1, 2, 3:
					r.Header.Set("Accept-Encoding", "gzip")
				}
				leaves, cancel := rand.IntN(6) == 0, func() {}
				if leaves {
					var ctx context.Context
					ctx, cancel = context.WithTimeout(context.Background(), time.Duration(rand.IntN(4000))*time.Microsecond)
					r = r.WithContext(ctx)
				}
				h := listen(r)
				cancel()
				for _, said := range numbered.FindAllStringSubmatch(h.body, -1) {
					p.mu.Lock()
					given, whole := p.given[said[1]], p.whole[said[1]]
					p.mu.Unlock()
					if given != said[2] || given != question+" of "+org {
						t.Errorf("%s of %s in %s got %s, which was given for %s", question, org, lane.name, said[0], given)
					}
					if h.status == http.StatusOK && h.err == nil && lane.name != "translated" && h.cache == "HIT" && h.body != whole {
						t.Errorf("%s: %q, want %q", lane.name, h.body, whole)
					}
				}
				switch {
				case h.cache != "HIT":
					led.Add(1)
				case leaves:
				case h.err != nil || h.status != http.StatusOK || !numbered.MatchString(h.body) || stream == 1 != strings.Contains(h.body, "data: "):
					t.Errorf("%s: a hit is %d %v %q", lane.name, h.status, h.err, h.body)
				default:
					hits.Add(1)
				}
			}
		})
	}
	for n := range *interleavings {
		work <- n
	}
	close(work)
	calls.Wait()
	t.Logf("%d calls to the provider, %d hits, %d without", p.asked.Load(), hits.Load(), led.Load())
	if hits.Load() < int64(*interleavings)/4 {
		t.Errorf("only %d hits", hits.Load())
	}
}

// A second call gets the bytes of the first in each lane, also when the store has sealed them, and
// in a new process. It costs nothing, and its record says where the answer is.
func TestHits(t *testing.T) {
	p, s := newAnswering(t)
	for _, lane := range cachedLanes {
		for _, stream := range []string{"", `,"stream":true`} {
			first := listen(lane.request(s, "a", "question-1", stream))
			if first.cache != "MISS" || first.status != http.StatusOK {
				t.Fatalf("%s: %+v", lane.name, first)
			}
			asked := p.asked.Load()
			for n := range 2 {
				again := listen(lane.request(s, "a", "question-1", stream, "Accept-Encoding", "gzip"))
				if again.cache != "HIT" || again.body != first.body || again.header.Get("Service-Cache-Bucket-Idx") != "0" || again.header.Get("Service-Id") == first.header.Get("Service-Id") {
					t.Errorf("%s, hit %d: %+v, want %q", lane.name, n, again, first.body)
				}
			}
			if other := listen(lane.request(s, "b", "question-1", stream)); other.cache != "MISS" || strings.Contains(other.body, " of a") {
				t.Errorf("%s: another organisation gets %+v", lane.name, other)
			}
			if p.asked.Load() != asked+1 {
				t.Errorf("%s: the provider got %d calls", lane.name, p.asked.Load()-asked)
			}
		}
	}
	records := func() gjson.Result {
		_, text := s.ask(http.MethodPost, "/query/v1/request/query", `{"filter":"all","limit":200,"sort":{"created_at":"asc"}}`, "Authorization", "Bearer weir-a-query")
		return gjson.Get(text, "data")
	}
	eventually(t, "all calls are recorded", func() bool { return len(records().Array()) == 3*2*len(cachedLanes) })
	hits := 0
	records().ForEach(func(_, r gjson.Result) bool {
		switch r.Get("answer_cache").Str {
		case "hit":
			hits++
			if r.Get("cost").Raw != "0" || r.Get("saved_cost").Num <= 0 || r.Get("cache_reference_id").Str == "" || r.Get("total_tokens").Raw != "0" || r.Get("end_state").Str != "complete" ||
				!strings.Contains(r.Get("response_body").Raw, "answer ") || r.Get("model").Str == "" || r.Get("response_status").Int() != 200 {
				t.Errorf("a hit is recorded as %s", r.Raw)
			}
		case "miss":
			if r.Get("cost").Num <= 0 || r.Get("saved_cost").Exists() && r.Get("saved_cost").Type != gjson.Null || !r.Get("response_body").IsObject() {
				t.Errorf("a miss is recorded as %s", r.Raw)
			}
		default:
			t.Errorf("a call is recorded as %s", r.Raw)
		}
		return true
	})
	if hits != 2*2*len(cachedLanes) {
		t.Errorf("%d hits are recorded: %v", hits, records().Get("#.{request_path,answer_cache,stream}"))
	}
}

// Equal calls at the same time are made once.
func TestEqualCallsAreMadeOnce(t *testing.T) {
	for _, c := range []struct {
		name          string
		fate          string
		leaves        bool
		asked         int64 // of the provider, with 8 clients; 0 if each client may ask it
		hits, answers int
	}{
		{name: "answered", asked: 1, hits: 7, answers: 8},
		{name: "the leader leaves", leaves: true, asked: 2, hits: 6, answers: 7},
		{name: "the leader fails", fate: "refuse", answers: 7},
	} {
		for _, lane := range cachedLanes {
			t.Run(c.name+", "+lane.name, func(t *testing.T) {
				p, s := newAnswering(t)
				p.hold = make(chan struct{})
				p.next = func(n int64) string {
					if n == 1 {
						return c.fate
					}
					return ""
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				results := make(chan heardBack, 8)
				go func() { results <- listen(lane.request(s, "a", "question-1", "").WithContext(ctx)) }()
				<-p.came
				var started sync.WaitGroup
				for range 7 {
					started.Go(func() { results <- listen(lane.request(s, "a", "question-1", "")) })
				}
				eventually(t, "all clients wait", func() bool { return waiting(s) == 8 })
				if c.leaves {
					leave()
					<-p.came
				}
				close(p.hold)
				hits, answers := 0, 0
				for range 8 {
					h := <-results
					if h.cache == "HIT" {
						hits++
					}
					if h.status == http.StatusOK && h.err == nil {
						answers++
					}
				}
				started.Wait()
				asked, wanted := c.asked, c.hits
				if asked == 0 {
					asked = p.asked.Load()
					wanted = 8 - int(asked)
				}
				if p.asked.Load() != asked || hits != wanted || answers != c.answers {
					t.Errorf("%d calls at the provider, %d hits, %d answers; want %d, %d, %d", p.asked.Load(), hits, answers, asked, wanted, c.answers)
				}
			})
		}
	}
}

// waiting is how many calls are in flight.
func waiting(s *site) int {
	for _, store := range stores.InUse() {
		if j := store.Opened(); j != nil {
			return int(j.Integrity().InFlight)
		}
	}
	s.t.Error("no store is open")
	return 0
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never:", what)
		}
	}
}

// What a provider does beside answering, what it keeps, and what may not be kept is never cached.
func TestWhatIsNotCached(t *testing.T) {
	p, s := newAnswering(t)
	chat, responses, native, translated := &cachedLanes[1], &cachedLanes[2], &cachedLanes[3], &cachedLanes[4]
	for name, c := range map[string]struct {
		lane   *cachedLane
		fields string
		header []string
	}{
		"omitted":              {chat, "", []string{"Service-Omit-Response", "true"}},
		"omitted, gateway":     {native, "", []string{"Service-Omit-Request", "true"}},
		"stored":               {chat, `,"store":true`, nil},
		"stored, native":       {native, `,"store":true`, nil},
		"stored by default":    {&cachedLane{"paid", "/paid/v1/responses", "gpt-5-nano", `{"model":"%s","input":"%s"%s}`}, "", nil},
		"web search":           {responses, `,"tools":[{"type":"web_search"}]`, nil},
		"web search beside":    {responses, `,"tools":[{"type":"function","name":"f","parameters":{}},{"type":"web_search"}]`, nil},
		"code interpreter":     {responses, `,"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`, nil},
		"mcp":                  {responses, `,"tools":[{"type":"mcp","server_label":"x","server_url":"https://x.example"}]`, nil},
		"search of chat":       {chat, `,"web_search_options":{}`, nil},
		"search of Anthropic":  {translated, `,"tools":[{"type":"web_search_20250305","name":"web_search"}]`, nil},
		"an unknown structure": {chat, `,"do_more":{"now":true}`, nil},
		"twice":                {chat, `,"model":"gpt-5-nano"`, nil},
		"a linked image":       {chat, `,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}]}]`, nil},
		"no identity":          {chat, "", []string{"Accept-Encoding", "gzip, identity;q=0"}},
		"no store":             {chat, "", []string{"Cache-Control", "no-store"}},
		"switched off":         {chat, "", []string{"Service-Cache-Enabled", "false"}},
	} {
		asked := p.asked.Load()
		for range 2 {
			if h := listen(c.lane.request(s, "a", "question-2", c.fields, c.header...)); h.cache == "HIT" {
				t.Errorf("%s: a hit", name)
			}
		}
		if got := p.asked.Load() - asked; got != 2 && name != "search of Anthropic" && name != "mcp" {
			t.Errorf("%s: the provider got %d calls", name, got)
		}
	}
}

// The headers of the cache mean what clients of other services mean by them.
func TestHeadersOfTheCache(t *testing.T) {
	_, s := newAnswering(t)
	for _, lane := range []*cachedLane{&cachedLanes[0], &cachedLanes[1], &cachedLanes[3]} {
		ask := func(fields string, header ...string) string {
			t.Helper()
			h := listen(lane.request(s, "a", "question-3", fields, header...))
			if h.err != nil {
				t.Fatal(h.err)
			}
			return h.cache
		}
		for i, step := range []struct {
			fields string
			header []string
			want   string
		}{
			{"", nil, "MISS"},
			{"", nil, "HIT"},
			{"", []string{"Service-Cache-Seed", "1"}, "MISS"},
			{"", []string{"Service-Cache-Seed", "1"}, "HIT"},
			{"", []string{"Cache-Control", "max-age=0"}, "MISS"},
			{"", []string{"Cache-Control", "no-cache"}, "MISS"},
			{"", []string{"Cache-Control", "max-age=3600"}, "HIT"},
			{`,"user":"x"`, nil, "MISS"},
			{`,"user":"y"`, []string{"Service-Cache-Ignore-Keys", "user, seed"}, "MISS"},
			{`,"user":"z","seed":7`, []string{"Service-Cache-Ignore-Keys", "seed,user"}, "HIT"},
			{`,"user":"z","stream":true`, []string{"Service-Cache-Ignore-Keys", "seed,user,stream"}, "MISS"},
			{`, "user" : "x" `, nil, "HIT"},
			{`,"temperature":1`, []string{"Service-Cache-Enabled", "false", "Service-Cache-Save", "true"}, "MISS"},
			{`,"temperature":1`, []string{"Service-Cache-Enabled", "false", "Service-Cache-Read", "true"}, "HIT"},
			{`,"temperature":2`, []string{"Service-Cache-Enabled", "false", "Service-Cache-Read", "true"}, "MISS"},
			{`,"temperature":2`, nil, "MISS"},
			{`,"top_p":1`, []string{"Service-Cache-Bucket-Max-Size", "2"}, "MISS"},
			{`,"top_p":1`, []string{"Service-Cache-Bucket-Max-Size", "2"}, "MISS"},
			{`,"top_p":1`, []string{"Service-Cache-Bucket-Max-Size", "2"}, "HIT"},
			{"", []string{"Service-Cache-Bucket-Max-Size", "21"}, ""},
			{"", []string{"Service-Cache-Enabled", ""}, ""},
		} {
			if got := ask(step.fields, step.header...); got != step.want {
				t.Errorf("%s, step %d %s %v: %q, want %q", lane.name, i, step.fields, step.header, got, step.want)
			}
		}
	}
}

// A hit counts in the limits of requests as any call does. A call that they refuse is none.
func TestHitsCountAsRequests(t *testing.T) {
	for _, lane := range cachedLanes {
		p, s := newAnswering(t)
		for i, want := range []int{200, 200, 200, 429} {
			if h := listen(lane.request(s, "limited", "question-1", "")); h.status != want || (h.cache == "HIT") != (i == 1 || i == 2) {
				t.Errorf("%s, call %d: %+v", lane.name, i, h)
			}
		}
		if p.asked.Load() != 1 {
			t.Errorf("%s: the provider got %d calls", lane.name, p.asked.Load())
		}
		var records gjson.Result
		eventually(t, "all calls are recorded", func() bool {
			_, text := s.ask(http.MethodPost, "/query/v1/request/query", `{"filter":"all","sort":{"created_at":"asc"}}`, "Authorization", "Bearer weir-limited-query")
			records = gjson.Get(text, "data")
			return len(records.Array()) == 4
		})
		if refused := records.Get("3"); refused.Get("answer_cache").String() != "" || refused.Get("cache_reference_id").String() != "" || refused.Get("saved_cost").String() != "" {
			t.Errorf("%s: a refused call is recorded as %s", lane.name, refused.Raw)
		}
	}
}

// What a provider does not want to be stored is not given again, and nobody waits for it.
func TestNoStore(t *testing.T) {
	for _, lane := range cachedLanes {
		for _, stream := range []string{"", `,"stream":true`} {
			p, s := newAnswering(t)
			p.next = func(int64) string { return "no-store" }
			for range 2 {
				if h := listen(lane.request(s, "a", "question-1", stream)); h.cache != "MISS" || h.status != http.StatusOK {
					t.Errorf("%s: %+v", lane.name, h)
				}
			}
		}
	}
}

// endings are answers of a provider, streamed unless they are an object, and whether they came to
// their end. A limit of output is an end.
var endings = []struct {
	lane, name, answer string
	complete           bool
}{
	{"chat", "stop", chatEvents(`"stop"`) + done, true},
	{"chat", "length", chatEvents(`"length"`) + done, true},
	{"chat", "no reason", chatEvents(`null`) + done, false},
	{"chat", "no reason and no end", chatEvents(`null`), false},
	{"chat", "an error", chatEvents(`null`) + eventsOf(`{"error":{"message":"overloaded","type":"server_error"}}`) + done, false},
	{"chat", "an error after the reason", chatEvents(`"stop"`) + eventsOf(`{"error":{"message":"overloaded","type":"server_error"}}`), false},
	{"chat", "failed", chatEvents(`"error"`) + done, false},
	{"chat", "interrupted", chatEvents(`"network_error"`) + done, false},
	{"chat", "a reason without a name here", chatEvents(`"of_the_future"`) + done, false},
	{"chat", "object, a reason without a name here", chatAnswer(`"of_the_future"`), false},
	{"chat", "a broken event", chatEvents(`"stop"`)[:150], false},
	{"chat", "object", chatAnswer(`"stop"`), true},
	{"chat", "object, length", chatAnswer(`"length"`), true},
	{"chat", "object without a reason", chatAnswer(`null`), false},
	{"chat", "object, interrupted", chatAnswer(`"abort"`), false},
	{"chat", "object with an error", `{"error":{"message":"overloaded","type":"server_error"}}`, false},
	{"chat", "half an object", chatAnswer(`"stop"`)[:150], false},
	{"messages", "end", messagesEvents(`"end_turn"`) + messageStop, true},
	{"messages", "max_tokens", messagesEvents(`"max_tokens"`) + messageStop, true},
	{"messages", "a reason without a name here", messagesEvents(`"of_the_future"`) + messageStop, false},
	{"messages", "no stop", messagesEvents(`"end_turn"`), false},
	{"messages", "done in its place", messagesEvents(`"end_turn"`) + done, false},
	{"messages", "an error", messagesEvents(`null`) + "event: error\n" + eventsOf(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), false},
	{"responses", "completed", responsesEnd("completed", ""), true},
	{"responses", "max_output_tokens", responsesEnd("incomplete", `"max_output_tokens"`), true},
	{"responses", "failed", responsesEnd("failed", ""), false},
	{"responses", "no end", begun, false},
	{"responses", "done in its place", begun + done, false},
	{"gemini", "stop", geminiEvents(`"STOP"`), true},
	{"gemini", "MAX_TOKENS", geminiEvents(`"MAX_TOKENS"`), true},
	{"gemini", "a reason without a name here", geminiEvents(`"OF_THE_FUTURE"`), false},
	{"gemini", "no reason", geminiEvents(`null`), false},
	{"translated", "completed", responsesEnd("completed", ""), true},
	{"translated", "max_output_tokens", responsesEnd("incomplete", `"max_output_tokens"`), true},
	{"translated", "failed", responsesEnd("failed", ""), false},
	{"translated", "no end", begun, false},
	{"translated", "done in its place", begun + done, false},
	{"translated chat", "stop", chatEvents(`"stop"`) + done, true},
	{"translated chat", "length", chatEvents(`"length"`) + done, true},
	{"translated chat", "interrupted", chatEvents(`"network_error"`) + done, false},
	{"translated chat", "object, interrupted", chatAnswer(`"abort"`), false},
	{"translated gemini", "stop", geminiEvents(`"STOP"`), true},
	{"translated gemini", "MAX_TOKENS", geminiEvents(`"MAX_TOKENS"`), true},
	{"translated gemini", "interrupted", geminiEvents(`"MALFORMED_FUNCTION_CALL"`), false},
	{"translated gemini", "a reason without a name here", geminiEvents(`"OF_THE_FUTURE"`), false},
	{"translated", "an error", begun + eventsOf(`{"type":"error","code":"server_error","message":"overloaded"}`), false},
}

const (
	done        = "data: [DONE]\n\n"
	messageStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

func chatEvents(reason string) string {
	return eventsOf(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hello"},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":`+reason+`}]}`)
}

func chatAnswer(reason string) string {
	return `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":` + reason + `}]}`
}

func messagesEvents(reason string) string {
	return "event: message_start\n" + eventsOf(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`) +
		"event: content_block_start\n" + eventsOf(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
		"event: content_block_delta\n" + eventsOf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`) +
		"event: content_block_stop\n" + eventsOf(`{"type":"content_block_stop","index":0}`) +
		"event: message_delta\n" + eventsOf(`{"type":"message_delta","delta":{"stop_reason":`+reason+`},"usage":{"output_tokens":2}}`)
}

func responsesEnd(status, reason string) string {
	end := strings.Replace(answered(message, statedUsage), `"completed"`, `"`+status+`"`, 1)
	if reason != "" {
		end = strings.TrimSuffix(end, "}") + `,"incomplete_details":{"reason":` + reason + `}}`
	}
	return begun + eventsOf(`{"type":"response.`+status+`","sequence_number":4,"response":`+end+`}`)
}

func geminiEvents(reason string) string {
	return eventsOf(`{"candidates":[{"content":{"role":"model","parts":[{"text":"hello"}]},"index":0}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"!"}]},"finishReason":`+reason+`,"index":0}],"usageMetadata":{"promptTokenCount":1}}`)
}

// An answer that has not come to its end is not given again, in any dialect and lane.
func TestIncompleteAnswersAreNotGivenAgain(t *testing.T) {
	var answer string
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.HasPrefix(answer, "{") {
			w.Header().Set("Content-Type", jsonType)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer provider.Close()
	s := serveWith(t, cachedConfig, provider.URL)
	lanes := map[string][]cachedLane{
		"chat":              {cachedLanes[0], cachedLanes[1], cachedLanes[3]},
		"messages":          {{"own", "/own/v1/messages", "claude-haiku-4-5", messagesQuestion}},
		"responses":         {{"own", "/own/v1/responses", "gpt-5-nano", responsesCall}, cachedLanes[2], {"native", "/v1/responses", "openai/gpt-5-nano", responsesCall}},
		"gemini":            {{"own", "/own/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "", `{%[1]s"contents":[{"role":"user","parts":[{"text":"%[2]s"}]}]}`}},
		"translated":        {cachedLanes[4]},
		"translated chat":   {{"translated chat", "/v1/messages", "mistral/mistral-small-latest", messagesQuestion}},
		"translated gemini": {{"translated gemini", "/v1/messages", "gemini/gemini-2.5-flash", messagesQuestion}},
	}
	for i, e := range endings {
		for _, lane := range lanes[e.lane] {
			fields := `,"stream":true`
			if strings.HasPrefix(e.answer, "{") || e.lane == "gemini" {
				fields = ""
			}
			answer = e.answer
			question := fmt.Sprintf("question-%d", i)
			first := listen(lane.request(s, "a", question, fields))
			if again := listen(lane.request(s, "a", question, fields)); (again.cache == "HIT") != e.complete {
				t.Errorf("%s, %s at %s: %s after %d %s, warnings %v", e.lane, e.name, lane.path, again.cache, first.status, first.body, again.header["Service-Warnings"])
			}
		}
	}
}

// routesConfig is a site with a route for each of the blocks of a proxy.
const routesConfig = `{
	admin off
	persist_config off
	auto_https off
	llm {
		store sqlite %[1]s/weir.db
	}
}
http://127.0.0.1:%[3]s {
	bind 127.0.0.1
	@x query who=x
	vars team account-y
	vars @x team account-x
	uri query -who
`

// Two routes, or two requests, share an answer only if the provider sees the same of them: its
// address, its credentials, and whatever else the route changes.
func TestRoutesShareWhatTheProviderCannotTellApart(t *testing.T) {
	p := &answering{given: map[string]string{}, whole: map[string]string{}}
	providers := [2]*httptest.Server{httptest.NewServer(p), httptest.NewServer(p)}
	defer providers[0].Close()
	defer providers[1].Close()
	config := routesConfig
	route := func(name, block string) {
		config += "\thandle_path /" + name + "/* {\n\t\tllm_proxy openai %[2]s {\n\t\t\t" + block + "\n\t\t}\n\t}\n"
	}
	for name, block := range map[string]string{
		"plain": "header_up Authorization \"Bearer account-a\"", "same": "header_up Authorization \"Bearer account-a\"",
		"other": "header_up Authorization \"Bearer account-b\"", "none": "header_up -Authorization",
		"project": "header_up Authorization \"Bearer account-a\"\n\t\t\theader_up OpenAI-Project p",
		"query":   "header_up Authorization \"Bearer account-a\"\n\t\t\trewrite {path}?project=p",
		"path":    "header_up Authorization \"Bearer account-a\"\n\t\t\trewrite /p{path}",
		"host":    "header_up Authorization \"Bearer account-a\"\n\t\t\theader_up Host other.example",
		"carrier": "header_up Authorization \"Bearer account-a\"\n\t\t\ttransport llm {\n\t\t\t\tdial_timeout 2s\n\t\t\t}",
		"usage":   "header_up Authorization \"Bearer account-a\"\n\t\t\tstream_usage on",
		"by team": "header_up Authorization \"Bearer {vars.team}\"",
		"several": "header_up Authorization \"Bearer account-a\"\n\t\t\tto " + providers[1].URL + "\n\t\t\tlb_policy header X-Take",
		"foreign": "header_up Authorization \"Bearer account-a\"\n\t\t\ttransport http",
	} {
		route(strings.ReplaceAll(name, " ", "-"), block)
	}
	s := serveWith(t, config+"}\n", providers[0].URL)
	ask := func(route string) heardBack {
		t.Helper()
		r := (&cachedLane{"", "/" + route, "gpt-5-nano", chatQuestion}).request(s, "any", "question-1", `,"stream":true`)
		if strings.HasPrefix(route, "several") {
			r.Header.Set("Authorization", "Bearer account-a")
		}
		h := listen(r)
		if h.err != nil || h.status != http.StatusOK {
			t.Fatalf("%s: %+v", route, h)
		}
		return h
	}
	const path = "/v1/chat/completions"
	for _, name := range []string{"plain", "other", "none", "project", "query", "path", "host", "carrier", "usage"} {
		if h := ask(name + path); h.cache != "MISS" {
			t.Errorf("%s gets another route's answer: %s", name, h.body)
		}
	}
	for name, cache := range map[string]string{"plain": "HIT", "same": "HIT", "other": "HIT", "project": "HIT", "query": "HIT", "path": "HIT", "host": "HIT", "usage": "HIT", "foreign": "MISS"} {
		if h := ask(name + path); h.cache != cache {
			t.Errorf("%s: %+v", name, h)
		} else if name == "foreign" && !strings.Contains(h.header.Get("Service-Warnings"), "the transport llm") {
			t.Errorf("%s: %v", name, h.header)
		}
	}
	for i, want := range []string{"MISS x", "MISS y", "HIT x", "HIT y"} {
		h := ask("by-team" + path + []string{"?who=x", "?who=y"}[i%2])
		if got := h.cache + " " + regexp.MustCompile(`of ([a-z]+)`).FindStringSubmatch(h.body)[1]; got != want {
			t.Errorf("step %d: %s, want %s", i, got, want)
		}
	}
	// What is known of a route is not forgotten when the configuration is loaded again.
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	s.load(config+"}\n", providers[0].URL)
	if h := ask("plain" + path); h.cache != "HIT" {
		t.Errorf("after a reload: %+v", h)
	}
}

// The cache outlives the process that filled it, and what it refers to may be gone.
func TestCacheOfAnotherProcess(t *testing.T) {
	p, s := newAnswering(t)
	var first []heardBack
	for _, lane := range cachedLanes {
		first = append(first, listen(lane.request(s, "a", "question-1", `,"stream":true`)))
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	s.load(cachedConfig, strings.TrimSuffix(p.url, "/"))
	for i, lane := range cachedLanes {
		if again := listen(lane.request(s, "a", "question-1", `,"stream":true`)); again.cache != "HIT" || again.body != first[i].body {
			t.Errorf("%s: %+v, want %q", lane.name, again, first[i].body)
		}
	}
}
