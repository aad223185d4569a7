package llmcommand

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// demoJob is the job of all calls of the demo, which no other call has.
const demoJob = "weir-demo"

// demoKey is the API key of the quickstart, whose dashboard the demo fills.
const demoKey = "weir-quickstart"

func demoCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	cmd.Flags().Int("days", 14, "Days of history to report")
	cmd.Flags().Uint64("seed", 1, "Seed of the traffic")
	cmd.Flags().Bool("remove", false, "Remove all calls of the demo, with a key of the scope admin")
	cmd.Flags().Bool("once", false, "End after the history, and play no live traffic")
	cmd.Args = cobra.NoArgs
	cmd.RunE = demo
}

func demo(cmd *cobra.Command, _ []string) error {
	if remove, _ := cmd.Flags().GetBool("remove"); remove {
		return removeDemo(cmd)
	}
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
	if err := c.recall(ctx, turns); err != nil {
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

// removeDemo erases the calls of the demo.
func removeDemo(cmd *cobra.Command) error {
	answer, err := keys(cmd, http.MethodPost, "/v1/erasures", map[string]any{
		"filter": map[string]any{"request_response_rmt": map[string]any{"job_id": map[string]string{"equals": demoJob}}}, "what": storage.EraseRecord.String(),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "removing %s made-up requests; `weir erase` shows when they are gone\n", formatCount(answer.Get("records").Int()))
	return err
}

// recall records calls of the past. Only OpenTelemetry can report past calls.
func (c *client) recall(ctx context.Context, turns []demoTurn) error {
	refused, err := newRefusals(c.stderr, "")
	spans := &spanSender{client: c, refused: refused}
	for i := 0; i < len(turns) && err == nil; i++ {
		err = spans.add(ctx, turns[i].span(), origin{File: "demo", Row: int64(i)})
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
	s := newSpan(t.trace, t.spanID, t.at, t.at.Add(t.latency))
	for name, value := range t.labels {
		s.label(name, value)
	}
	s.text("gen_ai.operation.name", "chat")
	s.text("gen_ai.provider.name", t.model.provider)
	s.text("gen_ai.request.model", t.model.name)
	s.text("url.path", "/v1/chat/completions")
	s.text("weir.request.body", t.request(t.model.name))
	s.count("http.response.status_code", int64(t.status))
	if t.status != http.StatusOK {
		s.setError(map[int]string{429: "RateLimitError", 502: "APIConnectionError", 529: "OverloadedError"}[t.status])
		s.text("weir.response.body", map[int]string{
			429: `{"error":{"type":"rate_limit_error","message":"Rate limit reached: try again in 2 s."}}`,
			502: "<html><head><title>502 Bad Gateway</title></head>\n<body><center><h1>502 Bad Gateway</h1></center></body></html>",
			529: `{"error":{"type":"overloaded_error","message":"Overloaded"}}`,
		}[t.status])
		return s
	}
	s.text("weir.response.body", asJSON(map[string]any{
		"id": "chatcmpl-" + t.spanID, "object": "chat.completion", "model": t.model.name,
		"choices": []any{map[string]any{"index": 0, "message": t.answer, "finish_reason": t.answer.FinishReason()}},
		"usage": map[string]any{
			"prompt_tokens": t.input, "completion_tokens": t.output, "total_tokens": t.input + t.output,
			"prompt_tokens_details": map[string]int{"cached_tokens": t.cached},
		},
	}))
	s.number("gen_ai.server.time_to_first_token", t.first.Seconds())
	return s
}

// request is the body of a turn, for a model.
func (t *demoTurn) request(model string) string {
	return asJSON(map[string]any{
		"model": model, "messages": t.messages, "tools": t.tools, "temperature": 0.2, "stream": true, "stream_options": map[string]bool{"include_usage": true},
	})
}

func asJSON(v any) string {
	text, _ := json.Marshal(v) // maps, lists and texts always marshal
	return string(text)
}

// scoreAnswers scores some of the newest answers, as an evaluation would.
func (c *client) scoreAnswers(ctx context.Context, traffic *demoTraffic) error {
	answers := json.RawMessage(`{"request_response_rmt":{"properties":{"Step":{"equals":"answer"}}}}`)
	var ids []string
	for record, err := range c.requests(ctx, &requestQuery{Filter: answers, Limit: 300, IncludeContent: new(false)}) {
		if err != nil {
			return err
		}
		ids = append(ids, record.Get("request_id").Str)
	}
	for _, id := range ids {
		scores := map[string]any{"accuracy": traffic.score(0.82), "helpful": traffic.Float64() < 0.9}
		answer, err := c.send(ctx, http.MethodPost, "/v1/request/"+id+"/score", map[string]any{"scores": scores})
		if err != nil {
			return err
		}
		answer.Body.Close()
	}
	return nil
}

// play makes a turn a call of /echo, recorded like any other call that passes.
func (c *client) play(ctx context.Context, t demoTurn) error {
	path := "/echo/v1/chat/completions"
	if t.status != http.StatusOK {
		path = "/echo/v1/retired" // the provider refuses it
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address+path, strings.NewReader(t.request("echo-1")))
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
