package llmcommand

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
)

func healthCommand(cmd *cobra.Command) {
	addAdminAddress(cmd)
	cmd.Args = cobra.NoArgs
	cmd.RunE = health
}

func health(cmd *cobra.Command, _ []string) error {
	response, err := requestAdmin(cmd, http.MethodGet, "/llm/health/ready", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
	return err
}
