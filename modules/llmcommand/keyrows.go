package llmcommand

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/spreadsheet"
)

// importKeyRows creates a key for each row of a file, or none: those of the rows before an error
// are deleted again.
func importKeyRows(cmd *cobra.Command, args []string) error {
	file, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) == 0 {
		return fmt.Errorf("%s: expected CSV whose first line names the columns, such as name,owner,project: %w", args[0], err)
	}
	names := rows[0]
	names[0] = strings.TrimPrefix(names[0], "\uFEFF") // as Excel writes
	if !slices.Contains(names, "name") {
		return fmt.Errorf("%s: the first line names no column name", args[0])
	}
	bodies := make([]map[string]any, 0, len(rows))
	for i, row := range rows[1:] {
		body, err := settingsRow(names, row)
		if err != nil {
			return fmt.Errorf("%s, row %d: %w", args[0], i+2, err)
		}
		bodies = append(bodies, body)
	}
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	secrets := cmd.OutOrStdout()
	if name, _ := cmd.Flags().GetString("secrets"); name != "" {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return misused("--secrets names a new file: %w", err)
		}
		defer f.Close() // each secret is written when its key is created
		secrets = f
	}
	out := csv.NewWriter(secrets)
	_ = out.Write([]string{"name", "id", "secret"}) // an error stays until Flush
	var created []string
	for i, body := range bodies {
		k, err := c.ask(cmd.Context(), http.MethodPost, "/v1/keys", body)
		if err == nil {
			created = append(created, k.Get("id").Str)
			_ = out.Write([]string{spreadsheet.Text(k.Get("name").Str), k.Get("id").Str, k.Get("secret").Str})
			out.Flush()
			for _, warning := range k.Get("warnings").Array() {
				fmt.Fprintf(cmd.ErrOrStderr(), "Warning: row %d: %s\n", i+2, printable(warning.Str))
			}
			err = out.Error() // whoever reads has gone, and nobody has the secret
		}
		if err != nil {
			return c.deleteKeys(cmd.Context(), created, fmt.Errorf("%s, row %d: %w", args[0], i+2, err))
		}
	}
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%d keys are created. Their secrets are shown only this once.\n", len(created))
	return err
}

// deleteKeys deletes keys because of an error, which it returns with what became of them.
func (c *client) deleteKeys(ctx context.Context, ids []string, because error) error {
	for i, id := range ids {
		if _, err := c.ask(context.WithoutCancel(ctx), http.MethodDelete, "/v1/keys/"+id, nil); err != nil {
			return fmt.Errorf("%w; of the keys created before, these are left, because they cannot be deleted: %s: %w", because, strings.Join(ids[i:], ", "), err)
		}
	}
	return fmt.Errorf("%w; the %d keys of the rows before are deleted again", because, len(ids))
}

// settingsRow returns the settings of a row. Within a field, spaces separate the elements of a list.
func settingsRow(names, row []string) (map[string]any, error) {
	body := map[string]any{"scopes": []string{"gateway", "log"}}
	for i, name := range names {
		switch value := strings.TrimSpace(row[i]); {
		case !slices.Contains(settingFlags, name):
			return nil, fmt.Errorf("there is no column %q, only %s", name, strings.Join(settingFlags, ", "))
		case value == "":
		case slices.Contains([]string{"scopes", "models", "providers", "properties", "trust", "mask"}, name):
			body[name] = strings.Fields(value)
		default:
			body[name] = value
		}
	}
	if body["name"] == nil {
		return nil, fmt.Errorf("the name is missing")
	}
	return body, parseSettings(body)
}
