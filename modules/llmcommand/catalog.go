package llmcommand

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/modules/llmadmin"
)

func catalogCommand(cmd *cobra.Command) {
	requireSubcommand(cmd)
	update := &cobra.Command{
		Use:   "update <file|address>",
		Short: "Installs a published catalogue of prices, and loads the configuration again",
		Args:  cobra.ExactArgs(1),
		RunE:  updateCatalog,
	}
	addAdminFlags(update)
	cmd.AddCommand(update)
}

func updateCatalog(cmd *cobra.Command, args []string) error {
	asJSON, err := beginAdminOutput(cmd)
	if err != nil {
		return err
	}
	from := args[0]
	if !strings.Contains(from, "://") {
		if from, err = filepath.Abs(from); err != nil {
			return err
		}
	}
	var installed llmadmin.InstalledCatalog
	answer, err := callAdminJSON(cmd, http.MethodPost, "/llm/catalog", map[string]string{"from": from}, &installed)
	if err != nil {
		return err
	}
	if installed.Version != installed.Running {
		if err := reload(cmd); err != nil {
			return fmt.Errorf("the catalogue of %s is installed, and Weir still uses that of %s: %w", installed.Version, installed.Running, err)
		}
	}
	out := cmd.OutOrStdout()
	switch {
	case asJSON:
		_, err = fmt.Fprintf(out, "%s\n", answer)
	case installed.Version == installed.Running:
		_, err = fmt.Fprintf(out, "The prices are of %s already.\n", installed.Version)
	default:
		_, err = fmt.Fprintf(out, "The prices are of %s now. Before, they were of %s.\n", installed.Version, installed.Running)
	}
	return err
}

// reload has a running Weir load its configuration again, as it is.
func reload(cmd *cobra.Command) error {
	config, err := callAdmin(cmd, http.MethodGet, "/config/", nil)
	if err != nil {
		return err
	}
	defer config.Body.Close()
	header := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"must-revalidate"}} // also if nothing has changed
	response, err := caddycmd.AdminAPIRequest(adminEndpoint(cmd), http.MethodPost, "/load", header, config.Body)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	return err
}
