package llmcommand

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
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
	} {
		root := &cobra.Command{Use: "weir", SilenceErrors: true}
		query, key, project := &cobra.Command{Use: "query [<filter>...]"}, &cobra.Command{Use: "key"}, &cobra.Command{Use: "project"}
		queryCommand(query)
		keyCommand(key)
		projectCommand(project)
		root.AddCommand(query, key, project)
		completeValues(root)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(io.Discard)
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, strings.Split(typed, " ")...))
		if err := root.ExecuteContext(t.Context()); err != nil || !slices.Contains(strings.Split(out.String(), "\n"), want) {
			t.Errorf("%q: %v\n%s", typed, err, &out)
		}
	}
}
