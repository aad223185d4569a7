package compat

import (
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// judges has checkouts of what others test gateways with. docs/judges.md names them, and
// has their results; nothing of theirs is in this repository.
var judges = flag.String("judges", "", "a `folder` with checkouts of the tests of others: gatewayproof, gomodel, ogx, openresponses, sectum")

// checkout is the folder of a judge.
func checkout(t *testing.T, name string) string {
	t.Helper()
	if *judges == "" {
		t.Skip("docs/judges.md says how to have others judge")
	}
	folder, err := filepath.Abs(filepath.Join(*judges, name))
	if err == nil {
		_, err = os.Stat(folder)
	}
	if err != nil {
		t.Skip(err)
	}
	return folder
}

// checkFailures holds the tests that failed, with what they said, against those whose failure
// docs/judges.md explains: each of these is a test or begins the names of some.
func checkFailures(t *testing.T, passed int, failed map[string]string, explained ...string) {
	t.Helper()
	seen := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		i := slices.IndexFunc(explained, func(begin string) bool { return strings.HasPrefix(name, begin) })
		if i < 0 {
			t.Errorf("%s fails: %.1500s", name, failed[name])
			continue
		}
		seen[explained[i]] = true
		t.Logf("%s fails, which docs/judges.md explains", name)
	}
	for _, begin := range explained {
		if !seen[begin] {
			t.Errorf("%s passes: docs/judges.md says that it fails", begin)
		}
	}
	t.Logf("%d pass, %d fail", passed, len(failed))
}

// TestOpenResponsesJudges asks the compliance tests of Open Responses about each kind of
// provider.
func TestOpenResponsesJudges(t *testing.T) {
	folder := checkout(t, "openresponses")
	w := startKinds(t)
	passed, failed := 0, make(map[string]string)
	for _, k := range providerKinds {
		command := exec.CommandContext(t.Context(), "bun", "bin/compliance-test.ts", "--json",
			"--base-url", w.url+"/v1", "--api-key", "weir-quickstart", "--model", k.id())
		command.Dir = folder
		out, err := command.Output() // which fails if a test fails
		results := gjson.GetBytes(out, "results").Array()
		if len(results) == 0 {
			t.Fatalf("bun: %v\n%s", err, out)
		}
		for _, r := range results {
			if r.Get("status").Str == "passed" {
				passed++
			} else {
				failed[k.name+" "+r.Get("id").Str] = r.Get("status").Str + ": " + r.Get("errors").Raw
			}
		}
	}
	// The echo calls only functions that are named.
	checkFailures(t, passed, failed, "echo tool-calling")
}

// TestGatewayproofJudges has gatewayproof judge a proxy.
func TestGatewayproofJudges(t *testing.T) {
	folder := checkout(t, "gatewayproof")
	provider := httptest.NewUnstartedServer(nil)
	upstream := provider.Listener.Addr().String()
	w := startQuickstart(t, "http://"+upstream)
	if err := provider.Listener.Close(); err != nil { // gatewayproof listens there
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "bun", filepath.Join(folder, "src/cli.ts"), "run",
		"--target", w.url+"/openai", "--mock-port", port(upstream)).CombinedOutput()
	passed, failed := 0, make(map[string]string)
	for line := range strings.Lines(string(out)) {
		var verdict, name string
		if n, _ := fmt.Sscan(line, &verdict, &name); n == 2 && verdict == "PASS" {
			passed++
		} else if n == 2 && verdict == "FAIL" {
			failed[name] = string(out)
		}
	}
	if passed == 0 {
		t.Fatalf("bun: %v\n%s", err, out)
	}
	checkFailures(t, passed, failed, "cost-accuracy")
}

// TestSectumJudges has the probes of sectum-ai ask whether organisations see each other, and whether
// what is erased is gone.
func TestSectumJudges(t *testing.T) {
	folder := checkout(t, "sectum")
	var organisations string
	arguments := []string{"python/sectum.py", ""}
	for _, name := range []string{"a", "b", "c", "d"} {
		organisations += "org " + name + " {\nkey key-" + name + " admin query gateway\n}\n"
		arguments = append(arguments, "key-"+name)
	}
	w := startWeir(t, strings.NewReader(gatewayOf("provider echo\n"+organisations, "}\nllm_control {")))
	arguments[1] = w.url
	out, err := exec.CommandContext(t.Context(), filepath.Join(folder, ".venv/bin/python"), arguments...).CombinedOutput()
	passed, failed := 0, make(map[string]string)
	for line := range strings.Lines(string(out)) {
		var verdict, name string
		if n, _ := fmt.Sscan(line, &verdict, &name); n == 2 && verdict == "PASS" {
			passed++
		} else if n == 2 && verdict == "FAIL" {
			failed[name] = line
		}
	}
	if err != nil || passed == 0 {
		t.Fatalf("python: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	checkFailures(t, passed, failed)
}

// junit is a report of pytest.
type junit struct {
	Cases []struct {
		File    string `xml:"classname,attr"`
		Name    string `xml:"name,attr"`
		Skipped *fault `xml:"skipped"`
		Failure *fault `xml:"failure"`
		Error   *fault `xml:"error"`
	} `xml:"testsuite>testcase"`
}

type fault struct {
	Message string `xml:"message,attr"`
}

// TestOGXJudges has the Responses tests of OGX judge a gateway whose model says what OGX
// recorded of GPT-4o. OGX asks a server of its own kind, too, which its health, providers and
// models are: ogxServer.
func TestOGXJudges(t *testing.T) {
	folder := checkout(t, "ogx")
	server := newOGXServer(t, filepath.Join(folder, "tests/integration/responses/recordings"))
	report := filepath.Join(t.TempDir(), "report.xml")
	command := exec.CommandContext(t.Context(), ".venv/bin/python", "-m", "pytest", "tests/integration/responses", "-q", "-p", "no:cacheprovider",
		"--setup=gpt", "--stack-config="+server.url, "--inference-mode=live", "--timeout=20", "--junitxml="+report)
	command.Dir, command.Env = folder, append(os.Environ(), "PYTHONPATH=src")
	out, err := command.CombinedOutput() // which fails if a test fails
	text, readErr := os.ReadFile(report)
	if readErr != nil {
		t.Fatalf("pytest: %v\n%s", err, out)
	}
	var results junit
	if err := xml.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	passed, skipped, failed := 0, 0, make(map[string]string)
	for _, c := range results.Cases {
		name := strings.TrimPrefix(c.File, "tests.integration.responses.") + "::" + c.Name
		switch {
		case c.Failure != nil:
			failed[name] = c.Failure.Message
		case c.Error != nil:
			failed[name] = c.Error.Message
		case c.Skipped != nil:
			skipped++
		default:
			passed++
		}
	}
	t.Logf("%d are skipped", skipped)
	checkFailures(t, passed, failed, ogxExplained...)
}

// ogxExplained are the tests of OGX that fail, in the groups of docs/judges.md.
var ogxExplained = []string{
	// The gateway keeps no vector stores, no prompts, no compactions and no connectors.
	"test_file_search::", "test_tool_responses::test_response_non_streaming_file_search", "test_tool_responses::test_response_sequential_file_search",
	"test_prompt_templates::",
	"test_compact_responses.TestCompactResponses::test_compact_chain_through_compaction[openai_client",
	"test_compact_responses.TestCompactResponses::test_compact_input_items_hides_compaction[openai_client",
	"test_compact_responses.TestCompactResponses::test_compact_response_is_retrievable[openai_client",
	"test_tool_responses::test_response_connector_resolution_mcp_tool", "test_tool_responses::test_function_call_output_list_file",
	// It searches nothing itself.
	"test_basic_responses::test_include_logprobs_with_web_search", "test_tool_responses::test_response_multi_turn_streaming_web_search",
	"test_tool_responses::test_response_non_streaming_web_search", "test_tool_responses::test_response_streaming_web_search",
	// It has OpenAI's fields, events and errors where OGX has others.
	"test_basic_responses::test_include_logprobs_streaming",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_incomplete_details_length",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_streaming_includes_usage",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_with_prompt_cache_key_streaming",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_with_safety_identifier_streaming",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_with_service_tier",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_with_stream_options",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_with_top_",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_with_truncation_",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_streaming_invalid_base64_image_failure_code_is_spec_compliant",
	"test_responses_errors.TestConversationsAPIErrors::", "test_responses_errors.TestResponsesAPIErrors::test_delete_nonexistent_response",
	"test_responses_errors.TestResponsesAPIErrors::test_invalid_model", "test_responses_errors.TestResponsesAPIErrors::test_invalid_previous_response_id",
	"test_responses_errors.TestResponsesAPIErrors::test_retrieve_nonexistent_response",
	"test_tool_responses::test_max_tool_calls_", "test_tool_responses::test_response_streaming_multi_turn_tool_execution",
	// It takes what OGX refuses.
	"test_mcp_authentication::test_mcp_authorization_error_when_header_provided",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_background_and_stream_mutually_exclusive",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_incomplete_details_max_iterations_exceeded",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_max_output_tokens_below_minimum",
	"test_openai_responses.TestOpenAIResponses::test_openai_response_streaming_failed_error_code_is_spec_compliant",
	"test_responses_errors.TestResponsesAPIErrors::test_guardrails_without_safety_api",
	"test_tool_responses::test_response_mcp_tool_approval", "test_tool_responses::test_response_non_streaming_mcp_tool",
}

// TestGoModelJudges has the gateway translate the answers of providers that GoModel keeps, and
// compares what they mean with what GoModel's contract says that they mean.
func TestGoModelJudges(t *testing.T) {
	folder := filepath.Join(checkout(t, "gomodel"), "tests/contract/testdata")
	cases := goModelCases(t, folder)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		label, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		body, _ := io.ReadAll(r.Body) // the gateway is here
		stream := gjson.GetBytes(body, "stream").Bool()
		c := cases[slices.IndexFunc(cases, func(c *goModelCase) bool { return c.label == label && c.stream == stream })]
		w.Header().Set("Content-Type", map[bool]string{false: "application/json", true: "text/event-stream"}[stream])
		http.ServeFile(w, r, filepath.Join(folder, c.answer))
	}))
	t.Cleanup(provider.Close)
	providers := make(map[string]string)
	for _, c := range cases {
		providers[c.label] = fmt.Sprintf("provider %s %s {\napi_key none\nbase_url %s/%[1]s\n}\n", c.label, c.kind, provider.URL)
	}
	w := startWeir(t, strings.NewReader(gatewayOf(strings.Join(slices.Collect(maps.Values(providers)), ""))))
	passed, failed := 0, make(map[string]string)
	for _, c := range cases {
		request, path := object{"model": c.label + "/any", "stream": c.stream, "messages": []object{chatText("user", "hello")}}, "/v1/chat/completions"
		if c.responses {
			request, path = object{"model": c.label + "/any", "stream": c.stream, "input": "hello"}, "/v1/responses"
		} else if c.stream {
			request["stream_options"] = object{"include_usage": true}
		}
		status, _, answer := w.ask(t, path, string(mustJSON(request)))
		if got := meaning(c.answered(answer)); status == http.StatusOK && reflect.DeepEqual(got, c.want) {
			passed++
		} else {
			failed[c.golden] = fmt.Sprintf("%d: %+v, want %+v in %s", status, got, c.want, answer)
		}
	}
	checkFailures(t, passed, failed)
}
