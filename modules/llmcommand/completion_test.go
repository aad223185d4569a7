package llmcommand

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A shell completes formats, fields and their values, and what the API lists.
func TestCompletion(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, map[string]string{
			"/v1/keys":                  `{"data":{"items":[{"id":"key_1","name":"laptop"}],"next":null}}`,
			"/v1/organization/projects": `{"object":"list","data":[{"id":"proj_1","name":"search"}]}`,
			"/v1/facets/query":          `{"data":{"fields":[{"field":"model","values":[{"value":"gpt-5","count":2}]}]}}`,
		}[r.URL.Path])
	}))
	t.Cleanup(api.Close)
	t.Setenv(addressEnv, api.URL)
	t.Setenv(keyEnv, "secret")
	for typed, want := range map[string]string{
		"key update ":              "key_1\tlaptop",
		"project limit ":           "search",
		"project limit search ":    ":0",
		"query mod":                "model=",
		"query model=":             "model=gpt-5",
		"query --format ":          "jsonl",
		"query --columns time,mod": "time,model",
		"query --by hour,":         "hour,user_id",
		"key create a --scopes ":   "metrics",
		"key create a --project ":  "search",
	} {
		if out := completed(t, cobra.ShellCompRequestCmd, typed); !slices.Contains(strings.Split(out, "\n"), want) {
			t.Errorf("%q: %s", typed, out)
		}
	}
}

func commandsToComplete() *cobra.Command {
	root := &cobra.Command{Use: "weir", SilenceErrors: true}
	query, key, project := &cobra.Command{Use: "query [<filter>...]"}, &cobra.Command{Use: "key"}, &cobra.Command{Use: "project"}
	queryCommand(query)
	keyCommand(key)
	projectCommand(project)
	root.AddCommand(query, key, project)
	completeValues(root)
	return root
}

// completed returns what the scripts of shells get for what is typed.
func completed(t *testing.T, request, typed string) string {
	t.Helper()
	var out bytes.Buffer
	root := commandsToComplete()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append([]string{request}, strings.Split(typed, " ")...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%q: %v", typed, err)
	}
	return out.String()
}

// Whatever names a caller chooses, the shell of an administrator who completes them runs nothing:
// the script for bash, which Caddy writes, expands what it is given.
func TestCompletionRunsNothing(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	names := []string{"ada", "x$(touch${IFS}" + ran + ")", "x`touch${IFS}" + ran + "`", "éva@a.example", "क्षि", "a:b/c.d_e-f+g,h=i%"}
	for _, special := range "$`'\"\\;&|<>(){}*?[]~!#^ \t\n\r\v\u0000\u001b\u007f\u0085\u00a0\u2018\u2019\u201d\u2013\u2028\u202e\u200b\ufffd" {
		names = append(names, "x"+string(special)+"x")
	}
	plain := []string{"a:b/c.d_e-f+g,h=i%", "ada", "éva@a.example", "क्षि"}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var items []map[string]string
		for _, name := range append([]string{"~x", "-x", "@x", "=x", "%1", ":4", ""}, names...) {
			items = append(items, map[string]string{"id": name, "value": name, "name": "Bob's\t$(laptop)"})
		}
		answer := map[string]any{"items": items}
		if r.URL.Path == "/v1/facets/query" {
			answer = map[string]any{"fields": []any{map[string]any{"values": items[7:]}}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": answer})
	}))
	t.Cleanup(api.Close)
	t.Setenv(addressEnv, api.URL)
	t.Setenv(keyEnv, "secret")

	var want []string
	for _, name := range plain {
		want = append(want, name+"\tBob s laptop")
	}
	if lines := strings.Split(completed(t, cobra.ShellCompRequestCmd, "key update "), "\n"); !slices.Equal(slices.Sorted(slices.Values(lines[:len(lines)-2])), want) {
		t.Errorf("keys: %q", lines)
	}

	script := filepath.Join(t.TempDir(), "weir")
	if err := commandsToComplete().GenBashCompletionFile(script); err != nil {
		t.Fatal(err)
	}
	bash := exec.CommandContext(t.Context(), "bash", "--norc", "-c", `
		weir() { printf %s "$ANSWER"; }
		_get_comp_words_by_ref() { words=(weir query user_id=) cword=2 cur=user_id= prev=query; } # of bash-completion
		_init_completion() { _get_comp_words_by_ref; }
		. "$SCRIPT"
		COMP_WORDS=(weir query user_id=) COMP_CWORD=2
		__start_weir
		printf '%s\n' "${COMPREPLY[@]}"`)
	bash.Env = append(os.Environ(), "SCRIPT="+script, "ANSWER="+strings.ReplaceAll(completed(t, cobra.ShellCompNoDescRequestCmd, "query user_id="), "\x00", ""))
	out, err := bash.Output()
	if got := strings.Fields(string(out)); err != nil || !slices.Contains(got, "user_id=ada") || !slices.Contains(got, "user_id=éva@a.example") {
		t.Errorf("%v: bash completes %q", err, got)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("bash has run a command of a caller")
	}
}

// All values that Weir itself gives are plain words.
func TestFlagValuesArePlainWords(t *testing.T) {
	for name, values := range flagValues {
		for _, value := range append(values, clientNames()...) {
			if !plainWord.MatchString(value) {
				t.Errorf("%s: shells do not get %q", name, value)
			}
		}
	}
}
