package llmcommand

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmadmin"
)

const adminEnv = "WEIR_ADMIN"

var adminFormats = []string{formatTable, formatJSON}

func addAdminAddress(cmd *cobra.Command) {
	cmd.Flags().String("admin", "", "Address of Caddy's admin endpoint (default $"+adminEnv+", else "+caddy.DefaultAdminListen+")")
}

func addAdminFlags(cmd *cobra.Command) {
	addAdminAddress(cmd)
	cmd.Flags().StringP("format", "o", formatTable, "Format: table, or json, which is what the admin endpoint answers")
	completeFlag(cmd, "format", adminFormats)
}

func adminOf(cmd *cobra.Command) string {
	flag, _ := cmd.Flags().GetString("admin")
	return strings.TrimPrefix(cmp.Or(flag, os.Getenv(adminEnv), caddy.DefaultAdminListen), "http://")
}

// processAt asks which Weir has an admin endpoint.
func processAt(address string) (*llmadmin.Process, error) {
	response, err := caddycmd.AdminAPIRequest(address, http.MethodGet, "/llm/process", nil, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	p := new(llmadmin.Process)
	return p, json.NewDecoder(response.Body).Decode(p)
}

// requestAdmin asks the admin endpoint. Without an error, the answer is success.
func requestAdmin(cmd *cobra.Command, method, path string, body io.Reader) (*http.Response, error) {
	address := adminOf(cmd)
	response, err := caddycmd.AdminAPIRequest(address, method, path, nil, body)
	if err != nil {
		return nil, unanswered(address, err)
	}
	return response, nil
}

// askAdmin reads what a path of the admin endpoint answers into result. With a
// nil body, the request has no body.
func askAdmin(cmd *cobra.Command, method, path string, body, result any) (answer json.RawMessage, err error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	response, err := requestAdmin(cmd, method, path, content)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err == nil {
		err = json.Unmarshal(answer, result)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer of the admin endpoint %s: %w", response.Request.URL.Host, err)
	}
	return answer, nil
}

// wantsJSON reads --format of a command that asks the admin endpoint. For people, the
// first line says which process answers.
func wantsJSON(cmd *cobra.Command) (bool, error) {
	name, _ := cmd.Flags().GetString("format")
	if !slices.Contains(adminFormats, name) {
		return false, misused("--format: expected one of %s, not %q", strings.Join(adminFormats, ", "), name)
	}
	if name == formatJSON {
		return true, nil
	}
	p, err := processAt(adminOf(cmd))
	if err != nil {
		return false, unanswered(adminOf(cmd), err)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), p)
	return false, err
}

// unanswered is the error for an admin endpoint that does not answer, or refuses. Caddy's client has what was
// answered in the text of its error.
func unanswered(address string, err error) error {
	if _, answer, ok := strings.Cut(err.Error(), "caddy responded with error: HTTP "); ok {
		_, body, _ := strings.Cut(answer, ": ")
		if reason := gjson.Get(body, "error").Str; reason != "" {
			return fmt.Errorf("the admin endpoint %s: %s", address, reason)
		}
	}
	return fmt.Errorf("the admin endpoint %s: %w; --admin or $%s says where it is", address, err, adminEnv)
}
