package llmcommand

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// whatIfBy are the attributes by which costs are compared.
var whatIfBy = []string{"total", "target", "model", "user", "session", "day"}

func whatIfCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addFormatFlags(cmd, "values", queryFormats...)
	f := cmd.Flags()
	f.String("policy", "", "An alias of the gateway, a file with one as JSON, or models with commas between them")
	f.String("by", "total", "What to compare: "+strings.Join(whatIfBy, ", "))
	f.Int("limit", 20, "Values that are listed, those whose costs would differ most")
	cmd.RunE = whatIf
}

func whatIf(cmd *cobra.Command, args []string) error {
	by, _ := cmd.Flags().GetString("by")
	columns := []column{
		{by, "value", plain}, {"calls", "calls", plain}, {"recorded", "compared_cost", dollars}, {"expected", "expected_cost", dollars},
		{"at least", "low_cost", dollars}, {"at most", "high_cost", dollars}, {"unknown", "unknown_calls", plain}, {"refused", "refused_calls", plain},
	}
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, columns, queryFormats...)
	if err != nil {
		return err
	}
	policy, err := policyOf(cmd)
	if err != nil {
		return err
	}
	filter, err := parseFilter(args)
	if err != nil {
		return err
	}
	limit, _ := cmd.Flags().GetInt("limit")
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	response, err := c.send(cmd.Context(), http.MethodPost, "/v1/whatif", map[string]any{
		"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "policy": policy, "limit": limit,
	})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	terminal := terminalWidth(c.stderr) > 0
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		line := gjson.ParseBytes(lines.Bytes())
		switch data := line.Get("data"); {
		case line.Get("error").Str != "":
			return errors.New(line.Get("error").Str)
		case data.IsObject():
			if terminal {
				fmt.Fprint(c.stderr, "\r\x1b[K")
			}
			return writeWhatIf(cmd, out, data, by)
		case terminal:
			fmt.Fprintf(c.stderr, "\r%s calls", formatCount(line.Get("calls").Int()))
		}
	}
	return fmt.Errorf("%s: %w", c.address, errors.Join(errBroken, lines.Err()))
}

func writeWhatIf(cmd *cobra.Command, out output, data gjson.Result, by string) error {
	rows := data.Get("by." + by).Array()
	switch by {
	case "total":
		rows = []gjson.Result{data.Get("total")}
	case "target":
		rows = data.Get("targets").Array()
	}
	for _, assumed := range data.Get("assumptions").Array() {
		fmt.Fprintln(cmd.ErrOrStderr(), "Assumed:", assumed.Str)
	}
	for _, b := range data.Get("budgets").Array() {
		fmt.Fprintf(cmd.ErrOrStderr(), "Budget %s: refuses %d of %d calls, of %d callers, which would have cost $%s\n",
			b.Get("name").Str, b.Get("refused").Int(), b.Get("calls").Int(), b.Get("callers").Int(), b.Get("saved_cost").Raw)
	}
	return writeRows(out, rows)
}

// policyOf returns the policy as the API takes it.
func policyOf(cmd *cobra.Command) (any, error) {
	policy, _ := cmd.Flags().GetString("policy")
	if policy == "" {
		return nil, misused("--policy names an alias, a file with one as JSON, or models with commas between them")
	}
	if text, err := os.ReadFile(policy); err == nil {
		if !json.Valid(text) {
			return nil, misused("--policy: %s is no JSON", policy)
		}
		return json.RawMessage(text), nil
	}
	if strings.ContainsAny(policy, ",/") {
		return strings.Split(policy, ","), nil
	}
	return policy, nil
}
