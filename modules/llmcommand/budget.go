package llmcommand

import (
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

var budgetColumns = []column{
	{"budget", "name", plain}, {"window", "window", plain}, {"per", "per", plain}, {"value", "value", plain}, {"counts", "quantity", plain}, {"limit", "limit", plain},
	{"spent", "spent", plain}, {"reserved", "reserved", plain}, {"remaining", "remaining", plain}, {"ends", "ends_at", moment},
}

func budgetCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addFormatFlags(cmd, "accounts", queryFormats...)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out, err := outputOf(cmd, cmd.OutOrStdout(), false, budgetColumns, queryFormats...)
		if err != nil {
			return err
		}
		data, err := keys(cmd, http.MethodGet, "/v1/budgets?limit=200", nil)
		if err != nil {
			return err
		}
		for _, budget := range data.Get("items").Array() {
			for _, account := range budget.Get("accounts").Array() { // a row has the fields of both
				row := strings.TrimSuffix(budget.Raw, "}") + "," + strings.TrimPrefix(account.Raw, "{")
				if err := out.write(gjson.Parse(row)); err != nil {
					return err
				}
			}
			if budget.Get("accounts.#").Int() == 0 {
				if err := out.write(budget); err != nil {
					return err
				}
			}
		}
		return out.flush()
	}
}
