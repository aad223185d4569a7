package examples

import (
	"context"
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
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/examples/quickstart"
	"github.com/weirhq/weir/internal/testkit/freeport"
)

// beWeir is the environment variable that makes the test's program a Weir.
const beWeir = "EXAMPLES_BE_WEIR"

func TestMain(m *testing.M) {
	if os.Getenv(beWeir) != "" {
		caddy.CustomBinaryName = "weir"
		caddycmd.Main()
		return
	}
	os.Exit(m.Run())
}

// blocks finds the blocks of code of a page. The groups are the reason not to run the
// block, its language, and its text.
var blocks = regexp.MustCompile("(?ms)(?:^<!-- not run: ([^\n]+) -->\n)?^ *```(\\w*)\n(.*?)^ *```$")

// standIns are what pages name that a new store does not have, with the command that makes
// it and the path of its name in the answer.
var standIns = map[string][2]string{
	"key_0123456789abcdef0123456789abcdef": {`curl -s localhost:8080/v1/keys -H 'Authorization: Bearer weir-quickstart' -d '{"name": "search agents", "scopes": ["log"]}'`, "data.id"},
	`"$SESSION"`:                           {`curl -s localhost:8080/echo/v1/embeddings -H 'Service-Session-Id: list' -d '{"model": "echo-1", "input": "x"}'; sleep 1`, "object"},
}

// exports are the files that the pages import, by the test data of the command.
var exports = map[string]string{
	"helicone.jsonl": "helicone.jsonl", "spend.csv": "litellm.csv", "keys.csv": "litellm-keys.csv", "traces.jsonl": "langfuse.json", "observations.jsonl": "langfuse.json",
	"logs.jsonl": "portkey.jsonl", "inferences.jsonl": "tensorzero.jsonl", "feedback.jsonl": "tensorzero.jsonl", "calls.jsonl": "tensorzero.jsonl",
}

// badRow is the last row of some exports, which the import must refuse: it has no id.
var badRow = regexp.MustCompile(`(?m)^\{"(request_)?created_at".*\n`)

// TestPages runs the blocks of sh in the README, SECURITY.md and docs in their order, page
// by page, and holds that each command succeeds. In the README and in docs/moving, the JSON
// or text behind a block is of its output. A comment before a block that cannot run says why:
//
//	<!-- not run: needs root -->
//
// A page's Weir serves the Caddyfile of the page if it moves from another product, else the
// quickstart. A server of this test plays the providers.
func TestPages(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	pages := []string{"../README.md", "../SECURITY.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no pages: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1790000000,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`)
	}))
	t.Cleanup(provider.Close)
	toProvider := strings.NewReplacer("llm_proxy openai\n", "llm_proxy openai "+provider.URL+"\n", "llm_proxy openrouter\n", "llm_proxy openrouter "+provider.URL+"\n",
		"provider openai {\n", "provider openai {\n\t\t\tbase_url "+provider.URL+"/v1\n")
	// With what the pages about keys, credits and alerts need.
	standard := strings.NewReplacer("key {$WEIR_API_KEY:weir-quickstart}", "key weir-quickstart admin query write gateway log\n\t\tchannel ops slack "+provider.URL+"\n\t\torg acme {\n\t\t\tcredits 1.00\n\t\t}\n",
		"\tllm_gateway\n", "\tllm_control\n\tllm_gateway\n").Replace(string(quickstart.Caddyfile))

	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		marks := strings.Count(string(text), "<!-- not run: ")
		moves := filepath.Base(filepath.Dir(path)) == "moving"
		prints := moves || path == pages[0]
		config, run := standard, false
		found := blocks.FindAllStringSubmatch(string(text), -1)
		for _, block := range found {
			reason, language, text := block[1], block[2], block[3]
			switch {
			case reason != "" && language == "sh":
				marks--
			case language == "sh":
				run = true
			case language == "caddyfile" && moves:
				config = toProvider.Replace(text)
			}
		}
		if marks != 0 {
			t.Errorf("%s: a comment that says not to run stands before no block of sh", path)
		}
		if run {
			t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "../"), ".md"), func(t *testing.T) {
				t.Parallel()
				runPage(t, config, found, prints)
			})
		}
	}
}

// runPage runs the blocks of one page beside a Weir with the configuration. If the page
// prints the output of its commands, the output is compared.
func runPage(t *testing.T, config string, blocks [][]string, prints bool) {
	w := serve(t, config)
	var output string // of the block before
	for _, block := range blocks {
		reason, language, text := block[1], block[2], block[3]
		switch {
		case language == "sh" && reason == "":
			for name, standIn := range standIns {
				if strings.Contains(text, name) {
					text = strings.ReplaceAll(text, name, gjson.Get(w.run(standIn[0]), standIn[1]).Str)
				}
			}
			if output = w.run(text); !prints {
				output = ""
			}
			continue
		case language == "json" && output != "":
			compare(t, "", gjson.Parse(output), gjson.Parse(text))
		case language == "" && output != "":
			for line := range strings.Lines(text) {
				if !strings.Contains(output, strings.TrimSpace(line)) {
					t.Errorf("%q is not in the answer %s", line, output)
				}
			}
		}
		output = ""
	}
}

// reader is who follows a page, in a directory of their own, beside a Weir.
type reader struct {
	t           *testing.T
	dir, admin  string
	environment []string
	here        *strings.Replacer // from the addresses and paths of the pages to those of the test
}

// serve runs a Weir until the test ends.
func serve(t *testing.T, config string) *reader {
	t.Helper()
	dir, port, admin := t.TempDir(), freeport.Port(t), freeport.Port(t)
	w := &reader{t: t, dir: dir, admin: admin}
	w.here = strings.NewReplacer("go run ./xcaddy/weir", "weir", "localhost:8080", "localhost:"+port, "localhost:2019", "localhost:"+admin,
		"https://llm.example.com", "http://localhost:"+port, "/var/backups", dir+"/backups", "/var/lib", dir+"/lib")
	w.environment = append(os.Environ(), beWeir+"=1", "PATH="+dir+"/bin:"+os.Getenv("PATH"), "HOME="+dir, "XDG_DATA_HOME="+dir+"/share",
		"WEIR_PORT="+port, "WEIR_ADMIN_PORT="+admin, "WEIR_URL=http://localhost:"+port, "WEIR_ADMIN=localhost:"+admin, "WEIR_DATA=./weir-data",
		"WEIR_API_KEY=weir-quickstart", "ACME_ADMIN_KEY=weir-quickstart", "ACME_KEY=weir-quickstart",
		"OPENAI_API_KEY=a-key", "ANTHROPIC_API_KEY=a-key", "OPENROUTER_API_KEY=a-key")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"Caddyfile": w.here.Replace(config), ".curlrc": "fail-with-body\nshow-error\n"}
	for name, from := range exports {
		text, err := os.ReadFile("../modules/llmcommand/testdata/" + from)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = badRow.ReplaceAllString(string(text), "")
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "bin", "weir")); err != nil {
		t.Fatal(err)
	}

	process := exec.Command(program, "run", "--config", "Caddyfile")
	var log strings.Builder
	process.Dir, process.Env, process.Stderr = dir, w.environment, &log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(os.Interrupt)
		if err := process.Wait(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://localhost:" + admin + "/config/"); err == nil {
			running, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil && gjson.ParseBytes(running).IsObject() {
				return w
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("Weir does not start")
		}
	}
}

// awaitRecords waits until all records can be queried, for as long as the README promises.
func (w *reader) awaitRecords() {
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if resp, err := http.Get("http://localhost:" + w.admin + "/llm/status"); err == nil {
			status, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if pending := gjson.GetBytes(status, "#.pending_records"); pending.IsArray() && strings.Trim(pending.Raw, "[0,]") == "" {
				return
			}
		}
	}
}

// run returns what commands print that must succeed.
func (w *reader) run(commands string) string {
	w.t.Helper()
	if strings.Contains(commands, "/query") {
		w.awaitRecords()
	}
	commands = w.here.Replace(commands)
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	bash.Dir, bash.Env = w.dir, w.environment
	output, err := bash.CombinedOutput()
	if err != nil {
		w.t.Errorf("%s: %v\n%s", commands, err, output)
	}
	return string(output)
}
