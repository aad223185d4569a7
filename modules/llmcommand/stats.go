package llmcommand

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/modules/llmadmin"
)

func statsCommand(cmd *cobra.Command) {
	addAdminFlags(cmd)
	cmd.Args = cobra.NoArgs
	cmd.RunE = stats
}

func stats(cmd *cobra.Command, _ []string) error {
	asJSON, err := beginAdminOutput(cmd)
	if err != nil {
		return err
	}
	var states []llmadmin.StoreStatus
	status, err := callAdminJSON(cmd, http.MethodGet, "/llm/status", nil, &states)
	if err != nil {
		return err
	}
	var balances []llmadmin.StoreIntegrity
	integrity, err := callAdminJSON(cmd, http.MethodGet, "/weir/integrity", nil, &balances)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]json.RawMessage{"status": status, "integrity": integrity})
	}
	byStore := map[string]llmadmin.StoreStatus{}
	for _, s := range states {
		byStore[s.Store] = s
	}

	g := &grid{
		w:        out,
		headings: []string{"STORE", "SEEN", "RECORDED", "WAITING", "IN FLIGHT", "LOST", "BODIES", "STATE"},
		right:    []bool{false, true, true, true, true, true, true, false},
	}
	for _, b := range balances {
		g.add(statsRow(b, byStore[b.Store]))
	}
	if err := g.flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "These are the calls that passed through Weir; those that were reported or imported do not count."); err != nil {
		return err
	}
	var wrong error
	for _, b := range balances {
		for _, l := range b.Losses {
			_, err := fmt.Fprintf(out, "%s lost %s exchanges (%s entries) from %s to %s: %s\n", b.Store, formatCount(l.Exchanges), formatCount(l.Count),
				l.From.Time().Local().Format(time.DateTime), l.To.Time().Local().Format(time.DateTime), l.Reason)
			if err != nil {
				return err
			}
		}
		if b.Unaccounted != 0 {
			wrong = fmt.Errorf("%d exchanges of the store %s are neither recorded, nor waiting, in flight or lost: please report it", b.Unaccounted, b.Store)
		}
	}
	return wrong
}

func statsRow(b llmadmin.StoreIntegrity, s llmadmin.StoreStatus) []string {
	state := "ok"
	if s.Error != "" {
		state = fmt.Sprintf("failing since %s: %s", s.FailingSince.Local().Format(time.DateTime), printable(s.Error))
	}
	return []string{
		b.Store,
		formatCount(b.Seen),
		formatCount(b.Recorded),
		fmt.Sprintf("%s (%s)", formatCount(b.Waiting), formatBytes(s.PendingBytes)),
		formatCount(b.InFlight),
		formatCount(b.Lost),
		formatBytes(s.RawBytes + s.SealedBytes),
		state,
	}
}

// formatBytes writes a size in the largest unit that is not larger than the size, by
// thousands.
func formatBytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n), ""
	for _, unit = range []string{"kB", "MB", "GB", "TB"} {
		if size /= 1000; size < 999.95 {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", size, unit)
}

func healthCommand(cmd *cobra.Command) {
	addAdminAddress(cmd)
	cmd.Args = cobra.NoArgs
	cmd.RunE = health
}

func health(cmd *cobra.Command, _ []string) error {
	response, err := callAdmin(cmd, http.MethodGet, "/llm/health/ready", nil)
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
