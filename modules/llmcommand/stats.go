package llmcommand

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

func statsCommand(cmd *cobra.Command) {
	adminFlags(cmd)
	cmd.RunE = stats
}

// storeStatus is what /llm/status of the admin endpoint says of a store.
type storeStatus struct {
	Store          string           `json:"store"`
	PendingRecords int64            `json:"pending_records"`
	PendingBytes   int64            `json:"pending_bytes"`
	RawBytes       int64            `json:"raw_bytes"`
	SealedBytes    int64            `json:"sealed_bytes"`
	Appended       int64            `json:"appended"`
	Lost           map[string]int64 `json:"lost"`
	Error          string           `json:"error"`
	FailingSince   time.Time        `json:"failing_since"`
}

func stats(cmd *cobra.Command, _ []string) error {
	var stores []storeStatus
	if shown, err := askAdmin(cmd, "/llm/status", &stores); shown || err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	g := &grid{
		w:        out,
		headings: []string{"STORE", "ENTRIES", "WAITING", "BODIES", "LOST", "STATE"},
		right:    []bool{false, true, true, true, true, false},
	}
	for _, s := range stores {
		g.add(s.row())
	}
	if err := g.flush(); err != nil {
		return err
	}
	for _, s := range stores {
		for _, reason := range slices.Sorted(maps.Keys(s.Lost)) {
			if _, err := fmt.Fprintf(out, "%s lost %s: %s\n", s.Store, formatCount(s.Lost[reason]), reason); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *storeStatus) row() []string {
	var lost int64
	for _, n := range s.Lost {
		lost += n
	}
	state := "ok"
	if s.Error != "" {
		state = fmt.Sprintf("failing since %s: %s", s.FailingSince.Local().Format(time.DateTime), printable(s.Error))
	}
	return []string{
		s.Store,
		formatCount(s.Appended),
		fmt.Sprintf("%s (%s)", formatCount(s.PendingRecords), formatBytes(s.PendingBytes)),
		formatBytes(s.RawBytes + s.SealedBytes),
		formatCount(lost),
		state,
	}
}

// formatBytes writes a size in the largest unit of which there is one, by
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
