package bound_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// asked is the body of a call of a model.
func asked(model string) string {
	return `{"model":"` + model + `","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`
}

func line(model string) string {
	return `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":` + asked(model) + `}`
}

// form is a form with a file, in which fields stand before and after.
func form(file string) string {
	return "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\n" +
		"Content-Disposition: form-data; name=\"file\"; filename=\"{}.jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n" + file +
		"\r\n--b\r\nContent-Disposition: form-data; name=\"expires_after[anchor]\"\r\n\r\ncreated_at\r\n--b--\r\n"
}

func read(provider, text string, chunk int) bound.Batch {
	u := bound.Upload{Adder: bound.Adder{Catalog: catalog.Default(), Provider: provider}}
	for len(text) > 0 {
		n := min(chunk, len(text))
		u.Write([]byte(text[:n]))
		text = text[n:]
	}
	return u.Batch()
}

// The calls in a file are added up by model, at any chunking.
func TestUploadsAddUpCalls(t *testing.T) {
	file := strings.Repeat(line("gpt-4o")+"\n", 3) + "\n" + line("gpt-4o-mini") + "\r\n" + line("gpt-4o")
	for _, chunk := range []int{1, 7, 64, 1 << 20} {
		b := read("openai", form(file), chunk)
		if len(b.Parts) != 2 || b.Parts[0].Model != "gpt-4o" || b.Parts[0].Calls != 4 || b.Parts[0].Endpoint != "/v1/chat/completions" || b.Parts[0].Output != 400 || b.Parts[1].Calls != 1 || b.Calls() != 5 {
			t.Fatalf("in chunks of %d: %s", chunk, b.Text())
		}
		body := int64(len(asked("gpt-4o")))
		if b.Parts[0].Longest != body || b.Parts[0].Input != 4*body || b.Parts[0].CacheWrite != b.Parts[0].Input {
			t.Errorf("the input is %s", b.Text())
		}
		if again := bound.ParseBatch(b.Text()); again.Text() != b.Text() {
			t.Errorf("a record has %s", again.Text())
		}
		most := b.MaxUsage(catalog.Default(), "openai", time.Now())
		if !most.Cost.Valid || most.Usage.Output != plugins.Known(500) || most.Usage.Input.N != b.Parts[0].Input+b.Parts[1].Input {
			t.Errorf("at most: %+v", most)
		}
	}
}

// What cannot be bounded is not known, whoever reads the file in another way.
func TestUploadsThatTellNoCost(t *testing.T) {
	good := line("gpt-4o")
	for name, file := range map[string]string{
		"no JSON":                   good + "\n{",
		"two objects in a line":     good + "\n" + good + "\r" + good,
		"an object over two lines":  "{\n" + good[1:],
		"a mark before the line":    "\ufeff" + good,
		"another model":             good + "\n" + line("made-up"),
		"no model":                  strings.Replace(good, `"model":"gpt-4o",`, "", 1),
		"a model that stands twice": strings.Replace(good, `"model":`, `"model":"gpt-4o-mini","model":`, 1),
		"two names of the model":    strings.Replace(good, `"model":`, `"model_id":"gpt-4o-mini","model":`, 1),
		"an agent":                  strings.Replace(good, `"model":`, `"agent_id":"ag_1","model":`, 1),
		"two bodies":                strings.Replace(good, `"url"`, `"body":{"model":"gpt-4o"},"url"`, 1),
		"two URLs":                  strings.Replace(good, `"url"`, `"url":"/v1/embeddings","url"`, 1),
		"another endpoint":          strings.Replace(good, "chat/completions", "images/generations", 1),
		"a tier":                    strings.Replace(good, `"max_tokens"`, `"service_tier":"priority","max_tokens"`, 1),
		"other models":              strings.Replace(good, `"max_tokens"`, `"fallbacks":["gpt-4"],"max_tokens"`, 1),
		"a painter":                 `{"url":"/v1/responses","body":{"model":"gpt-4o","input":"a","tools":[{"type":"image_generation"}]}}`,
		"a line of a header":        "--b\r\n" + good,
		"a header within a header":  "--x\r\nX: " + good + "\r\n\r\n" + good,
		"a line behind the end":     good + "\r\n--b--\r\n" + good,
		"a line that is too long":   `{"custom_id":"` + strings.Repeat("a", 17<<20) + `"` + good[1:],
		"nothing":                   "",
	} {
		if b := read("openai", form(file), 4096); b.Parts != nil {
			t.Errorf("%s: %s", name, b.Text())
		}
	}
	if b := read("openai", strings.TrimSuffix(form(good), "--b--\r\n"), 4096); b.Parts != nil {
		t.Errorf("a form that is cut: %s", b.Text())
	}
	if b := read("fireworks", form(good), 4096); b.Parts != nil {
		t.Errorf("a provider without the model: %s", b.Text())
	}
	if !capture.Reserve(capture.Memory()) {
		t.Error("an upload keeps its memory")
	}
	capture.Return(capture.Memory())
}

// Requests of Anthropic and Gemini have their calls within them.
func TestCallsWithinRequests(t *testing.T) {
	claude := func(requests string) string { return `{"requests":[` + requests + `]}` }
	params := `{"custom_id":"a","params":` + asked("claude-sonnet-4-5") + `}`
	gemini := func(batch string) string { return `{"batch":{"display_name":"a",` + batch + `}}` }
	request := `{"request":{"contents":[{"parts":[{"text":"hello"}]}],"generationConfig":{"maxOutputTokens":100}},"metadata":{"key":"a"}}`
	for name, c := range map[string]struct {
		provider, model, body string
		calls, output         int64
	}{
		"Claude":             {"anthropic", "", claude(params + "," + params), 2, 200},
		"two lists":          {"anthropic", "", `{"requests":[` + params + `],"requests":[]}`, 0, 0},
		"two calls in one":   {"anthropic", "", claude(strings.Replace(params, `"params"`, `"params":{},"params"`, 1)), 0, 0},
		"a model not known":  {"anthropic", "", claude(params + `,{"params":{"model":"claude-none","max_tokens":1}}`), 0, 0},
		"fast":               {"anthropic", "", claude(strings.Replace(params, `"max_tokens"`, `"speed":"fast","max_tokens"`, 1)), 0, 0},
		"no list":            {"anthropic", "", `{"requests":{}}`, 0, 0},
		"no calls":           {"anthropic", "", claude(""), 0, 0},
		"Gemini":             {"gemini", "gemini-2.5-flash", gemini(`"input_config":{"requests":{"requests":[` + request + `]}}`), 1, 100},
		"in the other style": {"gemini", "gemini-2.5-flash", gemini(`"model":"models/gemini-2.5-flash","inputConfig":{"requests":{"requests":[` + request + "," + request + `]}}`), 2, 200},
		"in both styles":     {"gemini", "gemini-2.5-flash", gemini(`"inputConfig":{"requests":{"requests":[` + request + `]}},"input_config":{}`), 0, 0},
		"of a file":          {"gemini", "gemini-2.5-flash", gemini(`"input_config":{"file_name":"files/1"}`), 0, 0},
		"of another model":   {"gemini", "gemini-2.5-flash", gemini(`"model":"models/gemini-2.5-pro","inputConfig":{"requests":{"requests":[` + request + `]}}`), 0, 0},
		"a call of another":  {"gemini", "gemini-2.5-flash", gemini(`"inputConfig":{"requests":{"requests":[` + strings.Replace(request, `"contents"`, `"model":"models/gemini-2.5-pro","contents"`, 1) + `]}}`), 0, 0},
	} {
		object, _ := plugins.ParseObject([]byte(c.body))
		adder := bound.Adder{Catalog: catalog.Default(), Provider: c.provider}
		b := adder.Inline(c.model, object)
		if most := b.MaxUsage(catalog.Default(), c.provider, time.Now()); b.Calls() != c.calls || most.Usage.Output.N != c.output || most.Cost.Valid != (c.calls > 0) {
			t.Errorf("%s: %s, at most %+v", name, b.Text(), most)
		}
	}
}

// The usage that a provider states of a batch has the price of batches, and the dearer one if
// that depends on the length of an input.
func TestStatedUsageOfBatches(t *testing.T) {
	prices, err := catalog.Parse([]byte(`{"providers":[{"id":"one","models":[{"id":"m","prices":[{"input":"10","output":"10"},{"tier":"batch","input":"1","output":"2"},{"tier":"batch","input_above":1000,"input":"3","output":"4"}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	used := plugins.Usage{Input: plugins.Known(1_000_000), Output: plugins.Known(1_000_000)}
	for longest, want := range map[int64]plugins.Nanodollars{1000: 3e9, 1001: 7e9} {
		b := bound.Batch{Parts: []*bound.BatchPart{{Model: "m", Calls: 2000, Longest: longest}}}
		if cost := b.Cost(prices, "one", used, catalog.Conditions{At: time.Now()}); cost != plugins.KnownCost(want) {
			t.Errorf("of up to %d tokens: %v", longest, cost)
		}
	}
	if cost := (bound.Batch{Parts: []*bound.BatchPart{{Model: "m"}, {Model: "n"}}}).Cost(prices, "one", used, catalog.Conditions{}); cost.Valid {
		t.Errorf("two models cost %v", cost)
	}
}

// Whatever a file has, the chunks in which it passes change nothing, and if its calls are known,
// they are all lines that are objects.
func FuzzUpload(f *testing.F) {
	good := line("gpt-4o")
	for _, file := range []string{good, good + "\n\n" + good + "\r\n", "\ufeff" + good, good + "\r" + good, "--b\r\n" + good, "{}", good + "\r\n--b--\r\n" + good, "--\n--x\n" + good} {
		f.Add(file, 3)
	}
	f.Fuzz(func(t *testing.T, file string, chunk int) {
		text := form(file)
		whole := read("openai", text, len(text))
		if pieces := read("openai", text, 1+max(chunk, 0)%64); pieces.Text() != whole.Text() {
			t.Fatalf("in pieces: %s, whole: %s", pieces.Text(), whole.Text())
		}
		if whole.Parts == nil {
			return
		}
		objects := int64(0)
		for text := range strings.Lines(file) {
			if strings.HasPrefix(strings.TrimSpace(text), "{") {
				objects++
			}
		}
		if whole.Calls() != objects {
			t.Errorf("%d calls of %d lines", whole.Calls(), objects)
		}
	})
}
