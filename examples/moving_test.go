package examples

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/tidwall/gjson"
	"github.com/weirhq/weir/internal/freeport"
)

// TestMoving runs the Caddyfile and the curl lines of each page in docs/moving, in their
// order, and holds that each answer has what is printed behind it. A server of this test
// plays the providers.
func TestMoving(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	pages, err := filepath.Glob("../docs/moving/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c","object":"chat.completion","created":1790000000,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`)
	}))
	defer provider.Close()
	toProvider := strings.NewReplacer("llm_proxy openai\n", "llm_proxy openai "+provider.URL+"\n", "llm_proxy openrouter\n", "llm_proxy openrouter "+provider.URL+"\n",
		"provider openai {\n", "provider openai {\n\t\t\tbase_url "+provider.URL+"/v1\n")

	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"} {
				t.Setenv(name, "a-key-of-the-provider")
			}
			t.Setenv("WEIR_API_KEY", "") // restores it
			os.Unsetenv("WEIR_API_KEY")
			t.Setenv("XDG_DATA_HOME", t.TempDir())
			port := freeport.Port(t)
			here := strings.NewReplacer("localhost:8080", "localhost:"+port, "localhost:2019", "localhost:"+freeport.Port(t), "./weir-data", t.TempDir())

			started := false
			defer func() {
				if started {
					if err := caddy.Stop(); err != nil {
						t.Error(err)
					}
				}
			}()
			var output string
			ran := 0
			for _, block := range regexp.MustCompile("(?s)```(\\w*)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
				switch language, text := block[1], here.Replace(block[2]); {
				case language == "caddyfile":
					config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(toProvider.Replace(text)), map[string]any{"filename": page})
					if err != nil || len(warnings) > 0 {
						t.Fatalf("%v %v", err, warnings)
					}
					if err := caddy.Load(config, true); err != nil {
						t.Fatal(err)
					}
					started = true
				case language == "json":
					compare(t, "", gjson.Parse(output), gjson.Parse(text))
				case language == "" && ran > 0:
					for line := range strings.Lines(text) {
						if !strings.Contains(output, strings.TrimSpace(line)) {
							t.Errorf("%q is not in the answer %s", line, output)
						}
					}
				case strings.HasPrefix(text, "curl "):
					if ran++; strings.Contains(text, "/query") {
						time.Sleep(time.Second) // what the README promises
					}
					answer, err := exec.Command("sh", "-c", text).CombinedOutput()
					if output = string(answer); err != nil || strings.Contains(output, `"error":{`) {
						t.Fatalf("%s: %v\n%s", text, err, output)
					}
				}
			}
			if !started || ran == 0 {
				t.Error("the page has no Caddyfile or no curl lines")
			}
		})
	}
}
