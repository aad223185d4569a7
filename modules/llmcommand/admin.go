package llmcommand

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

func adminFlags(cmd *cobra.Command) {
	cmd.Flags().String("admin", caddy.DefaultAdminListen, "Address of Caddy's admin endpoint")
	cmd.Flags().Bool("json", false, "Show the answers of the admin endpoint as they are")
	cmd.Args = cobra.NoArgs
}

// askAdmin reads what a path of the admin endpoint answers into result.
func askAdmin(cmd *cobra.Command, path string, result any) (answer json.RawMessage, err error) {
	address, _ := cmd.Flags().GetString("admin")
	response, err := caddycmd.AdminAPIRequest(address, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("the admin endpoint %s: %w; --admin says where it is", address, err)
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&answer)
	if err == nil {
		err = json.Unmarshal(answer, result)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer of the admin endpoint %s: %w", address, err)
	}
	return answer, nil
}
