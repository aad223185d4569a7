package llmcommand

import (
	"encoding/json"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
)

var routeColumns = []column{
	{"target", "target", plain}, {"state", "state", plain}, {"arm", "arm", plain}, {"strategy", "strategy", plain}, {"cached tokens", "cached_tokens", plain},
	{"under way", "under_way", plain}, {"first token ms", "first_token_ms", plain}, {"expected cost", "expected_cost", plain}, {"reason", "reason", plain},
}

func routesCommand(cmd *cobra.Command) {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	explain := keyAction("explain <model>", "Shows which targets a call would try, in which order, and why", nameModel, explainRoute)
	explain.Long = explain.Short + ". Nothing is sent to a provider, charged or recorded"
	f := explain.Flags()
	f.String("request", "", "File with the request, - for standard input (default: a short question)")
	f.String("path", "/v1/chat/completions", "Endpoint whose request it is")
	f.StringToString("header", nil, "Headers of the call, such as Service-User-Id=ada")
	addFormatFlags(explain, "targets", queryFormats...)
	cmd.AddCommand(explain)
}

// nameModel checks the arguments of explain.
func nameModel(_ *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return misused("name one model or alias, as a request has it in `model`: weir routes explain smart")
	}
	return nil
}

func explainRoute(cmd *cobra.Command, args []string) error {
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, routeColumns, queryFormats...)
	if err != nil {
		return err
	}
	body := []byte(`{"messages":[{"role":"user","content":"hi"}]}`)
	if file, _ := cmd.Flags().GetString("request"); file == "-" {
		body, err = io.ReadAll(cmd.InOrStdin())
	} else if file != "" {
		body, err = os.ReadFile(file)
	}
	if err != nil {
		return misused("--request: %w", err)
	}
	if body, err = sjson.SetBytes(body, "model", args[0]); err != nil || !plugins.ValidJSON(body) {
		return misused("--request: the request is no JSON object")
	}
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	c.header = http.Header{dryRun: {"true"}}
	headers, _ := cmd.Flags().GetStringToString("header")
	for name, value := range headers {
		c.header.Set(name, value)
	}
	path, _ := cmd.Flags().GetString("path")
	answer, err := c.envelope(cmd.Context(), http.MethodPost, path, json.RawMessage(body))
	if err != nil {
		return err
	}
	return writeRows(out, answer.Get("targets").Array())
}
