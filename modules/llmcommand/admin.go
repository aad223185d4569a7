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

func adminEndpoint(cmd *cobra.Command) string {
	flag, _ := cmd.Flags().GetString("admin")
	return strings.TrimPrefix(cmp.Or(flag, os.Getenv(adminEnv), caddy.DefaultAdminListen), "http://")
}

// fetchProcess returns which Weir process serves an admin endpoint.
func fetchProcess(address string) (*llmadmin.Process, error) {
	response, err := caddycmd.AdminAPIRequest(address, http.MethodGet, "/llm/process", nil, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	p := new(llmadmin.Process)
	return p, json.NewDecoder(response.Body).Decode(p)
}

// callAdmin sends a request to the admin endpoint. Any status but success is an error.
func callAdmin(cmd *cobra.Command, method, path string, body io.Reader) (*http.Response, error) {
	address := adminEndpoint(cmd)
	response, err := caddycmd.AdminAPIRequest(address, method, path, nil, body)
	if err != nil {
		return nil, adminError(address, err)
	}
	return response, nil
}

// callAdminJSON sends body, unless it is nil, to a path of the admin endpoint. It decodes the answer
// into result, and returns it as it came, too: `--format json` prints that.
func callAdminJSON(cmd *cobra.Command, method, path string, body, result any) (answer json.RawMessage, err error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	response, err := callAdmin(cmd, method, path, content)
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

// beginAdminOutput reports whether --format asks for JSON. If not, it writes the first line of the
// output, which names the process that answers.
func beginAdminOutput(cmd *cobra.Command) (asJSON bool, err error) {
	name, _ := cmd.Flags().GetString("format")
	if !slices.Contains(adminFormats, name) {
		return false, misused("--format: expected one of %s, not %q", strings.Join(adminFormats, ", "), name)
	}
	if name == formatJSON {
		return true, nil
	}
	address := adminEndpoint(cmd)
	p, err := fetchProcess(address)
	if err != nil {
		return false, adminError(address, err)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), p)
	return false, err
}

// adminError explains an error of Caddy's admin client. If the endpoint refused the request, the reason is
// only in the text of that error: the client returns no response then.
func adminError(address string, err error) error {
	if _, answer, ok := strings.Cut(err.Error(), "caddy responded with error: HTTP "); ok {
		_, body, _ := strings.Cut(answer, ": ")
		if reason := gjson.Get(body, "error").Str; reason != "" {
			return fmt.Errorf("the admin endpoint %s: %s", address, reason)
		}
	}
	return fmt.Errorf("the admin endpoint %s: %w; --admin or $%s says where it is", address, err, adminEnv)
}
