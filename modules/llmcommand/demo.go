package llmcommand

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

// demoKey is the API key of the quickstart, whose dashboard the demo fills.
const demoKey = "weir-quickstart"

func demoCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	cmd.Flags().Int("days", 14, "Days of history to report")
	cmd.Flags().Uint64("seed", 1, "Seed of the traffic")
	cmd.Flags().Bool("once", false, "End after the history, and play no live traffic")
	cmd.Args = cobra.NoArgs
	cmd.RunE = demo
}

func demo(cmd *cobra.Command, _ []string) error {
	days, _ := cmd.Flags().GetInt("days")
	if days < 0 || days > 90 {
		return fmt.Errorf("days: 0 to 90 are possible, not %d", days)
	}
	seed, _ := cmd.Flags().GetUint64("seed")
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	c.key = cmp.Or(c.key, demoKey)
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()

	traffic := newDemoTraffic(seed)
	now := time.Now()
	turns := traffic.history(now.AddDate(0, 0, -days), now)
	if err := c.report(ctx, turns); err != nil {
		return err
	}
	if err := c.scoreAnswers(ctx, traffic); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "reported %s requests of the last %d days to %s\n", formatCount(int64(len(turns))), days, c.address)
	if once, _ := cmd.Flags().GetBool("once"); once {
		return nil
	}
	fmt.Fprintln(cmd.OutOrStdout(), "playing live traffic through /echo until interrupted (Ctrl-C)")
	for {
		for _, turn := range traffic.session(time.Now(), 1) {
			if err := c.play(ctx, turn); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(turn.latency / 4):
			}
		}
	}
}

// report records calls of the past, which only OpenTelemetry can tell of.
func (c *client) report(ctx context.Context, turns []demoTurn) error {
	spans := &spanSender{client: c}
	var err error
	for i := 0; i < len(turns) && err == nil; i++ {
		err = spans.add(ctx, turns[i].span())
	}
	if err == nil {
		err = spans.flush(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%w; the demo needs a site with llm_otlp, as the quickstart has", err)
	}
	return err
}

func (t *demoTurn) span() *span {
	s := &span{TraceID: t.trace, SpanID: t.spanID, Name: "chat"}
	s.took(t.at, t.at.Add(t.latency))
	messages := func(key string, list ...message) {
		body, _ := json.Marshal(list) // text always marshals
		s.text(key, string(body))
	}
	for name, value := range t.labels {
		s.label(name, value)
	}
	s.text("gen_ai.operation.name", "chat")
	s.text("gen_ai.provider.name", t.model.provider)
	s.text("gen_ai.request.model", t.model.name)
	messages("gen_ai.input.messages", t.messages...)
	s.count("http.response.status_code", int64(t.status))
	if t.status != http.StatusOK {
		s.failed(map[int]string{429: "RateLimitError", 529: "OverloadedError"}[t.status])
		return s
	}
	s.text("gen_ai.response.model", t.model.name)
	s.text("gen_ai.response.finish_reasons", t.finish)
	messages("gen_ai.output.messages", t.answer)
	s.count("gen_ai.usage.input_tokens", int64(t.input))
	s.count("gen_ai.usage.cache_read.input_tokens", int64(t.cached))
	s.count("gen_ai.usage.output_tokens", int64(t.output))
	s.number("gen_ai.server.time_to_first_token", t.first.Seconds())
	return s
}

// scoreAnswers scores some of the newest answers, as an evaluation would.
func (c *client) scoreAnswers(ctx context.Context, traffic *demoTraffic) error {
	answers := json.RawMessage(`{"request_response_rmt":{"properties":{"Step":{"equals":"answer"}}}}`)
	var ids []string
	for record, err := range c.requests(ctx, &requestQuery{Filter: answers, Limit: 300}) {
		if err != nil {
			return err
		}
		ids = append(ids, record.Get("request_id").Str)
	}
	for _, id := range ids {
		scores := map[string]any{"accuracy": traffic.score(0.82), "helpful": traffic.Float64() < 0.9}
		answer, err := c.post(ctx, "/v1/request/"+id+"/score", map[string]any{"scores": scores})
		if err != nil {
			return err
		}
		answer.Body.Close()
	}
	return nil
}

// play makes a turn a call of /echo, recorded like any other call that passes.
func (c *client) play(ctx context.Context, t demoTurn) error {
	body, err := json.Marshal(map[string]any{"model": "echo-1", "messages": t.messages, "stream": true, "stream_options": map[string]bool{"include_usage": true}})
	if err != nil {
		return err
	}
	path := "/echo/v1/chat/completions"
	if t.status != http.StatusOK {
		path = "/echo/v1/retired" // the provider refuses it
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Service-Auth", "Bearer "+c.key)
	for name, value := range t.labels {
		r.Header.Set("Service-"+name, value)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK && t.status == http.StatusOK {
		err = fmt.Errorf("%s%s: %s: %s; the demo needs /echo, as the quickstart has it", c.address, path, answer.Status, gjson.GetBytes(text, "error.message").Str)
	}
	return err
}

// demoTraffic makes up sessions of users with agents that call tools.
type demoTraffic struct{ *rand.Rand }

func newDemoTraffic(seed uint64) *demoTraffic { return &demoTraffic{rand.New(rand.NewPCG(seed, 0))} }

// demoTurn is one call of a model.
type demoTurn struct {
	at                    time.Time
	latency, first        time.Duration
	trace, spanID         string
	labels                map[string]string // control headers, without their prefix
	model                 demoModel
	messages              []message
	answer                message
	input, cached, output int // tokens
	status                int
	finish                string
}

// message is one of Chat Completions.
type message map[string]any

type demoModel struct {
	provider, name string
	pace           float64 // milliseconds a token of output
}

var demoModels = []demoModel{
	{"openai", "gpt-5-mini", 9}, {"anthropic", "claude-sonnet-4-5", 14}, {"openai", "gpt-4o-mini", 8},
	{"gemini", "gemini-2.5-flash", 5}, {"ollama", "qwen3-coder-internal", 22}, // nobody knows a price of the last
}

// demoScenes are what agents do: each tool is a turn, and the answer another.
var demoScenes = []struct {
	name, team, system, question, answer string
	tools                                [][3]string // name, arguments, result
	models                               []int
}{
	{
		"Support", "care", "You are the support agent of a shop. Look orders up before you answer.",
		"Where is my order **%d**? It was sent on Monday.", "Order %d is **in transit** and arrives tomorrow.\n\n| step | state |\n|---|---|\n| warehouse | done |\n| carrier | on its way |",
		[][3]string{{"find_order", `{"order":%d}`, `{"order":%d,"state":"in transit","carrier":"post"}`}, {"track_parcel", `{"parcel":"P-%d"}`, `{"eta":"tomorrow","events":3}`}},
		[]int{0, 0, 2, 3},
	}, {
		"Code review", "platform", "You review pull requests. Be brief, cite lines.",
		"Review pull request #%d.", "Two findings in #%d:\n\n1. `ctx` is not passed on, so the call cannot be cancelled.\n2. The error of `Close` is lost.\n\n```go\ndefer func() { err = errors.Join(err, f.Close()) }()\n```",
		[][3]string{{"read_diff", `{"pull":%d}`, `diff of %d: 214 lines in 6 files`}, {"run_tests", `{"pull":%d}`, `ok, 48 tests of %d`}, {"read_file", `{"path":"store/%d.go"}`, "func Open(ctx context.Context) // %d"}},
		[]int{1, 1, 4},
	}, {
		"Research", "growth", "You plan, let sub-agents search, and write a summary with sources.",
		"Summarise what customers in segment %d say about pricing.", "Segment %d finds the plans *fair* and the invoices hard to read. Three of four sources agree.",
		[][3]string{{"plan", `{"segment":%d}`, `3 steps for %d`}, {"agents/web/search", `{"q":"pricing %d"}`, `12 results for %d`}, {"agents/crm/search", `{"segment":%d}`, `48 tickets of %d`}, {"agents/crm/read", `{"ticket":%d}`, `ticket %d: the invoice has no line items`}},
		[]int{1, 3},
	}, {
		"Search", "growth", "Rewrite the query for a product search.", "red shoes size %d", "colour:red category:shoes size:%d", nil, []int{2, 3, 3},
	},
}

var demoUsers = strings.Fields("ada grace linus margaret edsger barbara donald radia ken frances dennis katherine tony adele john hedy niklaus joan brian jean")

// history are the turns from then to now: busy by day, growing, and with one
// incident.
func (t *demoTraffic) history(then, now time.Time) (turns []demoTurn) {
	hours := int(now.Sub(then).Hours())
	for hour := range hours {
		begin := now.Add(-time.Duration(hours-hour) * time.Hour)
		busy := 2 + 6*math.Max(0, math.Sin(float64(begin.Hour()-6)/24*2*math.Pi)) + 4*float64(hour)/float64(hours)
		if hours-hour <= 2 {
			busy *= 3 // so that the last minutes have some, too
		}
		for range int(busy + t.Float64()*2) {
			at, known := begin.Add(time.Duration(t.Int64N(int64(time.Hour)))), 1-float64(hours-hour)/float64(hours+24)
			for _, turn := range t.session(at, known) {
				incident := turn.model.provider == "anthropic" && hours-hour >= 26 && hours-hour < 29
				if incident {
					turn.latency *= 3
				}
				if incident && t.Float64() < 0.8 {
					turn.status = 529
				}
				if turn.at.Add(turn.latency).Before(now) {
					turns = append(turns, turn)
				}
			}
		}
	}
	slices.SortFunc(turns, func(a, b demoTurn) int { return a.at.Compare(b.at) })
	return turns
}

// session is one session that begins at a time. Users join one after the other:
// known is the share of them who have.
func (t *demoTraffic) session(at time.Time, known float64) (turns []demoTurn) {
	scene, number := demoScenes[t.IntN(len(demoScenes))], 1000+t.IntN(9000)
	fill := func(text string) string { return strings.ReplaceAll(text, "%d", strconv.Itoa(number)) }
	share := t.Float64() // a few users ask most
	labels := map[string]string{
		"User-Id":          demoUsers[int(share*share*math.Max(4, known*float64(len(demoUsers))))],
		"Property-Feature": strings.ToLower(strings.ReplaceAll(scene.name, " ", "-")), "Property-Team": scene.team,
		"Property-Step": "answer", "Property-Environment": []string{"production", "production", "production", "staging"}[t.IntN(4)],
	}
	if len(scene.tools) > 0 {
		labels["Session-Id"], labels["Session-Name"] = fmt.Sprintf("%s-%08x", labels["Property-Feature"], t.Uint32()), scene.name
	}
	model, trace := demoModels[scene.models[t.IntN(len(scene.models))]], fmt.Sprintf("%016x%016x", t.Uint64(), t.Uint64())
	messages := []message{{"role": "system", "content": scene.system}, {"role": "user", "content": fill(scene.question)}}
	input := 400 + t.IntN(1200)
	for step := range len(scene.tools) + 1 {
		turn := demoTurn{
			at: at, trace: trace, finish: "stop", spanID: fmt.Sprintf("%016x", t.Uint64()|1), model: model, status: 200,
			labels: maps.Clone(labels), messages: slices.Clone(messages), input: input, output: 30 + t.IntN(400),
		}
		if step > 0 && model.provider != "ollama" && t.Float64() < 0.85 {
			turn.cached = input * (60 + t.IntN(30)) / 100 // the prefix of the turn before
		}
		turn.first = time.Duration(180+t.ExpFloat64()*220) * time.Millisecond
		turn.latency = turn.first + time.Duration(float64(turn.output)*model.pace*(0.7+t.Float64()))*time.Millisecond
		if t.Float64() < 0.02 {
			turn.status = 429
		}
		turn.answer = message{"role": "assistant", "content": fill(scene.answer)}
		if step < len(scene.tools) {
			tool := scene.tools[step]
			path := strings.Split(tool[0], "/")
			id, function := fmt.Sprintf("call_%08x", t.Uint32()), map[string]string{"name": path[len(path)-1], "arguments": fill(tool[1])}
			turn.answer = message{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": function}}}
			turn.finish = "tool_calls"
			turn.labels["Property-Step"], turn.labels["Session-Path"] = "tool", "/"+labels["Property-Feature"]+"/"+tool[0]
			messages = append(messages, turn.answer, message{"role": "tool", "tool_call_id": id, "content": fill(tool[2])})
		} else if len(scene.tools) > 0 {
			turn.labels["Session-Path"] = "/" + labels["Property-Feature"]
		}
		turns = append(turns, turn)
		at, input = at.Add(turn.latency+time.Duration(t.IntN(2000))*time.Millisecond), input+turn.output+200+t.IntN(800)
	}
	return turns
}

// score is one around a mean, within 0 and 1.
func (t *demoTraffic) score(mean float64) float64 {
	return math.Round(100*math.Min(1, math.Max(0, mean+0.12*t.NormFloat64()))) / 100
}
