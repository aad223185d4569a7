package llmadmin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"text/tabwriter"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "credits",
		Usage: "[<org> <dollars>] [--address <interface>]",
		Short: "Shows the credits of organisations, or grants more",
		Long: `
Shows what the organisations of the running server may still spend on providers
that the house's key pays for. With an organisation and an amount, grants that
many US dollars more:

	weir credits acme 20.00

The server is asked on its admin endpoint.`,
		CobraFunc: func(cmd *cobra.Command) {
			cmd.Args = cobra.MaximumNArgs(2)
			cmd.Flags().String("address", "", "The address of the admin endpoint, if it is not the default")
			cmd.RunE = caddycmd.WrapCommandFuncForCobra(runCredits)
		},
	})
}

func runCredits(flags caddycmd.Flags) (int, error) {
	method, body := http.MethodGet, io.Reader(nil)
	switch args := flags.Args(); len(args) {
	case 0:
	case 2:
		text, err := json.Marshal(grant{args[0], args[1]})
		if err != nil {
			return caddy.ExitCodeFailedStartup, err
		}
		method, body = http.MethodPost, bytes.NewReader(text)
	default:
		return caddy.ExitCodeFailedStartup, errors.New("name an organisation and an amount, or neither")
	}
	address, err := caddycmd.DetermineAdminAPIAddress(flags.String("address"), nil, "", "")
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	resp, err := caddycmd.AdminAPIRequest(address, method, "/llm/credits", http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	defer resp.Body.Close()
	var list []struct {
		Org                               string
		Balance, Granted, Spent, Reserved json.Number
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "org\tbalance\tgranted\tspent\treserved\t")
	for _, c := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\n", c.Org, c.Balance, c.Granted, c.Spent, c.Reserved)
	}
	if err := table.Flush(); err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	return caddy.ExitCodeSuccess, nil
}
