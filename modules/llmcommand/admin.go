package llmcommand

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

const adminEnv = "WEIR_ADMIN"

var adminFormats = []string{formatTable, formatJSON}

func addAdminFlags(cmd *cobra.Command) {
	cmd.Flags().String("admin", "", "Address of Caddy's admin endpoint (default $"+adminEnv+", else "+caddy.DefaultAdminListen+")")
	cmd.Flags().String("format", formatTable, "Format: table, or json, which is what the admin endpoint answers")
}

// askAdmin reads what a path of the admin endpoint answers into result. A nil body
// is none.
func askAdmin(cmd *cobra.Command, method, path string, body, result any) (answer json.RawMessage, err error) {
	flag, _ := cmd.Flags().GetString("admin")
	address := cmp.Or(flag, os.Getenv(adminEnv), caddy.DefaultAdminListen)
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	response, err := caddycmd.AdminAPIRequest(address, method, path, nil, content)
	if err != nil {
		return nil, fmt.Errorf("the admin endpoint %s: %w; --admin or $%s says where it is", address, err, adminEnv)
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err == nil {
		err = json.Unmarshal(answer, result)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer of the admin endpoint %s: %w", address, err)
	}
	return answer, nil
}

// wantsJSON reads --format of a command that asks the admin endpoint.
func wantsJSON(cmd *cobra.Command) (bool, error) {
	name, _ := cmd.Flags().GetString("format")
	if !slices.Contains(adminFormats, name) {
		return false, fmt.Errorf("--format: expected one of %s, not %q", strings.Join(adminFormats, ", "), name)
	}
	return name == formatJSON, nil
}
