package llmcommand

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func creditsCommand(cmd *cobra.Command) {
	addAdminFlags(cmd)
	cmd.Args = cobra.MaximumNArgs(2)
	cmd.RunE = credits
}

// grant is the body of a POST to /llm/credits.
type grant struct {
	Org    string `json:"org"`
	Amount string `json:"amount"` // in US dollars
}

func credits(cmd *cobra.Command, args []string) error {
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
	method, body := http.MethodGet, any(nil)
	switch len(args) {
	case 1:
		return errors.New("expected an organisation and an amount, as in `weir credits acme 20.00`, or neither")
	case 2:
		method, body = http.MethodPost, grant{args[0], args[1]}
	}
	var accounts []struct {
		Org, Store                        string
		Balance, Granted, Spent, Reserved float64
	}
	answer, err := askAdmin(cmd, method, "/llm/credits", body, &accounts)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if asJSON {
		_, err := fmt.Fprintf(out, "%s\n", answer)
		return err
	}
	g := &grid{
		w:        out,
		headings: []string{"ORG", "STORE", "BALANCE", "GRANTED", "SPENT", "RESERVED"},
		right:    []bool{false, false, true, true, true, true},
	}
	for _, a := range accounts {
		row := []string{printable(a.Org), printable(a.Store)}
		for _, amount := range []float64{a.Balance, a.Granted, a.Spent, a.Reserved} {
			row = append(row, nanodollars(amount).String())
		}
		g.add(row)
	}
	return g.flush()
}
