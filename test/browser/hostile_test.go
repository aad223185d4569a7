package browser

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// hostile are texts that would run a script wherever they became markup, an
// address, an attribute or code. Each says so by setting window.pwned.
func hostile() (texts []string) {
	run := "pwned=1"
	for _, tag := range []string{
		`<script>%s</script>`, `<img src=x onerror=%s>`, `<svg onload=%s>`, `<svg><script>%s</script></svg>`, `<body onload=%s>`,
		`<iframe srcdoc="<script>parent.%s</script>">`, `<iframe src="javascript:parent.%s">`, `<a href="javascript:%s">a</a>`,
		`<details open ontoggle=%s>`, `<video><source onerror=%s></video>`, `<input autofocus onfocus=%s>`, `<marquee onstart=%s>`,
		`<object data="javascript:%s">`, `<embed src="javascript:%s">`, `<math><mi xlink:href="javascript:%s">`, `<form action="javascript:%s"><button>`,
		`<link rel=stylesheet href=x onerror=%s>`, `<style onload=%s></style>`, `<meta http-equiv=refresh content="0;url=javascript:%s">`, `<base href="javascript:%s//">`,
	} {
		texts = append(texts, fmt.Sprintf(tag, run), `"'>`+fmt.Sprintf(tag, run))
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("<script>" + run + "</script>"))
	return append(texts,
		"[a](javascript:"+run+")", "[a](JaVaScRiPt:"+run+")", "![a](x \"onerror="+run+"\")", "[a](data:text/html;base64,"+encoded+")", "<javascript:"+run+">",
		"`</code><script>"+run+"</script>`", "```html\n<script>"+run+"</script>\n```", "| a |\n|---|\n| <script>"+run+"</script> |", "# <script>"+run+"</script>", "> <img src=x onerror="+run+">",
		"{{constructor.constructor('"+run+"')()}}", "${"+run+"}", "javascript:"+run, "</textarea><script>"+run+"</script>", "<!--><script>"+run+"</script>-->",
		"&lt;script&gt;"+run+"&lt;/script&gt;", "\u202e<script>"+run+"</script>", "<scr\x00ipt>"+run+"</scr\x00ipt>", "__proto__", "constructor",
	)
}

func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	texts := hostile()
	if len(texts) < 60 {
		t.Fatalf("%d texts", len(texts))
	}
	header := strings.NewReplacer("\n", " ", "\x00", "", "\u202e", "").Replace
	var messages []any
	labels := []string{"Service-User-Id: all"}
	for i, text := range texts {
		w.chat(text, text, "Service-User-Id: "+header(text), "Service-Session-Id: "+header(text), "Service-Session-Name: "+header(text),
			"Service-Session-Path: /"+header(text), "Service-Property-Hostile: "+header(text), fmt.Sprintf("Service-Property-N%d: %s", i%8, header(text)))
		messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
		labels = append(labels, fmt.Sprintf("Service-Property-P%d: %s", i, header(text)))
	}
	messages = append(messages, map[string]string{"role": "user", "content": strings.Join(texts, "\n\n")})
	for _, nested := range []string{">", "["} { // without an end
		messages = append(messages, map[string]string{"role": "assistant", "content": strings.Repeat(nested, 20000)})
	}
	w.post("/echo/v1/chat/completions", map[string]any{"model": "echo-all", "messages": messages}, labels...)
	w.until(len(texts) + 1)

	p := newTab(w)
	p.login(w.key)
	for _, view := range views {
		p.open("?v=" + view)
		p.checkPolicy()
	}
	p.open("?v=requests&f=model:equals:echo-all")
	p.press("j")
	p.until(`document.querySelector("dialog.drawer [role=tabpanel]")`)
	p.settled()
	js[int](p, `document.querySelectorAll("button.more").forEach((b) => b.click())`+" || 0")
	for i, text := range texts {
		shows := header(text)
		if strings.ContainsAny(text, "`#>|[!") && !strings.HasPrefix(text, "<") { // Markdown, of which a part is left
			shows = "pwned"
		}
		if !strings.Contains(header(p.text()), shows) {
			t.Errorf("the conversation does not show text %d, %q", i, text)
		}
	}
	for range 6 {
		p.press("]")
		p.settled()
		if text := p.text(); !strings.Contains(text, "echo-all") {
			t.Errorf("a tab shows\n%s", text)
		}
	}
	if js[bool](p, `Boolean(window.pwned) || frames.length > 0`) {
		t.Error("a text ran as a script")
	}
	if links := js[[]string](p, `[...document.querySelectorAll("a")].map((a) => a.href).filter((h) => !/^(https?|mailto):/.test(h))`); len(links) > 0 {
		t.Errorf("links to %q", links)
	}
}

func TestContentThatIsNotKeptSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.chat("echo-omitted", "a secret", "Service-Omit-Request: true", "Service-Omit-Response: true", "Authorization: Bearer sk-credential")
	w.chat("echo-kept", "no secret", "Authorization: Bearer sk-credential")
	w.until(2)
	p := newTab(w)
	p.login(w.key)
	for model, says := range map[string]string{"echo-omitted": "not kept", "echo-kept": "no secret"} {
		p.open("?v=requests&f=model:equals:" + model)
		p.press("j")
		p.until(`document.querySelector("dialog.drawer [role=tabpanel]")`)
		p.settled()
		if text := p.text(); !strings.Contains(text, says) || !strings.Contains(text, model) {
			t.Errorf("%s does not say %q:\n%s", model, says, text)
		}
		for range 6 {
			p.press("]")
			p.settled()
			if text := p.text(); strings.Contains(text, "a secret") || strings.Contains(text, "sk-credential") {
				t.Errorf("a tab of %s shows what is not kept:\n%s", model, text)
			}
		}
	}
}
