package browser

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestTheDearestMissesOfTheCacheAreListed(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","model":"gpt-5-mini","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"It is blue."}}],
			"usage":{"prompt_tokens":5000,"completion_tokens":4,"total_tokens":5004,"prompt_tokens_details":{"cached_tokens":0}}}`)
	}))
	t.Cleanup(provider.Close)
	t.Setenv("OPENAI_UPSTREAM", provider.URL)
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	call := func(tools []any, texts ...string) {
		var messages []any
		for i, text := range texts {
			messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
		}
		w.post("/openai/v1/chat/completions", map[string]any{"model": "gpt-5-mini", "tools": tools, "messages": messages})
	}
	tool := map[string]any{"type": "function", "function": map[string]any{"name": "look", "parameters": map[string]any{"type": "object"}}}
	call([]any{tool}, "What colour is the sky?")
	call([]any{tool, tool}, "What colour is the sky?", "It is blue.", "And the sea?")
	w.until(2)

	p := newTab(w)
	p.login(w.key)
	p.show("?v=models")
	p.until(`document.querySelector("[aria-label='Worst misses'] tbody")?.innerText.includes("tools changed")`)
	p.do(chromedp.Click(chromedp.CSS(`[aria-label='Worst misses'] a`)))
	p.until(`document.querySelector("dialog.drawer [role=tabpanel]")`)
	p.press("]")
	p.until(`document.querySelector("dialog.drawer [role=tabpanel]").innerText.includes("1 message as in the turn before")`)

	p.show("?v=sessions")
	p.do(chromedp.Click(chromedp.CSS(`main input[type=checkbox]`)))
	p.until(`document.querySelector("[aria-label=Sessions] tbody a")`)
	p.do(chromedp.Click(chromedp.CSS(`[aria-label=Sessions] tbody a`)))
	p.until(`document.querySelectorAll(".trace tr[data-id]").length === 3`)

	// The result of a tool is shown, also if its call is gone.
	w.post("/openai/v1/chat/completions", map[string]any{"model": "gpt-5-mini", "messages": []any{map[string]string{"role": "tool", "tool_call_id": "gone", "content": "fog"}}}, "Service-User-Id: alone")
	w.until(3)
	p.open("?v=requests&f=user_id:equals:alone")
	p.press("j")
	p.until(`document.querySelector(".call.result pre")?.innerText === "fog"`)
}
