package llmcommand

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func integrityCommand(cmd *cobra.Command) {
	adminFlags(cmd)
	cmd.RunE = integrity
}

// storeIntegrity is what /llm/integrity of the admin endpoint says of a store.
type storeIntegrity struct {
	Store       string `json:"store"`
	Seen        int64  `json:"seen"`
	Recorded    int64  `json:"recorded"`
	Waiting     int64  `json:"waiting"`
	InFlight    int64  `json:"in_flight"`
	Lost        int64  `json:"lost"`
	Unaccounted int64  `json:"unaccounted"`
	Losses      []struct {
		Reason    string    `json:"reason"`
		Entries   int64     `json:"entries"`
		Exchanges int64     `json:"exchanges"`
		From      time.Time `json:"from"`
		To        time.Time `json:"to"`
	} `json:"losses"`
}

func integrity(cmd *cobra.Command, _ []string) error {
	var stores []storeIntegrity
	if shown, err := askAdmin(cmd, "/llm/integrity", &stores); shown || err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	g := &grid{
		w:        out,
		headings: []string{"STORE", "SEEN", "RECORDED", "WAITING", "IN FLIGHT", "LOST"},
		right:    []bool{false, true, true, true, true, true},
	}
	for _, s := range stores {
		g.add([]string{
			s.Store, formatCount(s.Seen), formatCount(s.Recorded), formatCount(s.Waiting), formatCount(s.InFlight), formatCount(s.Lost),
		})
	}
	if err := g.flush(); err != nil {
		return err
	}
	var wrong error
	for _, s := range stores {
		for _, l := range s.Losses {
			_, err := fmt.Fprintf(out, "%s lost %s exchanges (%s entries) from %s to %s: %s\n", s.Store, formatCount(l.Exchanges), formatCount(l.Entries),
				l.From.Local().Format(time.DateTime), l.To.Local().Format(time.DateTime), l.Reason)
			if err != nil {
				return err
			}
		}
		if s.Unaccounted != 0 {
			wrong = fmt.Errorf("%d exchanges of the store %s are neither recorded, nor waiting, in flight or lost: please report it", s.Unaccounted, s.Store)
		}
	}
	return wrong
}
