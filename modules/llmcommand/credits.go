package llmcommand

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmadmin"
)

var creditsColumns = []column{
	{"org", "org", plain}, {"store", "store", plain},
	{"balance", "balance", dollars}, {"granted", "granted", dollars}, {"spent", "spent", dollars}, {"reserved", "reserved", dollars},
}

func creditsCommand(cmd *cobra.Command) {
	addAdminFlags(cmd)
	cmd.Args = cobra.MaximumNArgs(2)
	cmd.RunE = credits
}

func credits(cmd *cobra.Command, args []string) error {
	asJSON, err := beginAdminOutput(cmd)
	if err != nil {
		return err
	}
	method, body := http.MethodGet, any(nil)
	switch len(args) {
	case 1:
		return misused("expected an organisation and an amount, as in `weir credits acme 20.00`, or neither")
	case 2:
		method, body = http.MethodPost, llmadmin.Grant{Org: args[0], Amount: args[1]}
	}
	answer, err := callAdminJSON(cmd, method, "/llm/credits", body, new(json.RawMessage))
	if err != nil {
		return err
	}
	if asJSON {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", answer)
		return err
	}
	table, err := newTable(cmd.OutOrStdout(), creditsColumns, time.UTC, false)
	if err != nil {
		return err
	}
	return writeRows(table, gjson.ParseBytes(answer).Array())
}
