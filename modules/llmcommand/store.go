package llmcommand

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/modules/llmadmin"
	"github.com/weirhq/weir/storage/transfer"
)

func storeCommand(cmd *cobra.Command) {
	requireSubcommand(cmd)
	cmd.AddCommand(copyCommand())
}

func copyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "copy --from <store> --to <store>",
		Short: "Copies the contents of a store to another one",
		Args:  cobra.NoArgs,
		RunE:  copyStore,
	}
	f := cmd.Flags()
	f.String("from", "", "The store to copy, by its name in the Caddyfile")
	f.String("to", "", "The store to copy to")
	f.String("since", "", "The first time of records to copy, or an age such as 7d (default: all)")
	f.String("until", "", "The time at which records are too young, or an age (default: now)")
	f.Bool("verify", false, "Compare the stores in the end")
	addAdminFlags(cmd)
	return cmd
}

func copyStore(cmd *cobra.Command, _ []string) error {
	asJSON, err := beginAdminOutput(cmd)
	if err != nil {
		return err
	}
	flags := cmd.Flags()
	stores := make(map[string]any)
	for _, name := range []string{"from", "to"} {
		store, _ := flags.GetString(name)
		if store == "" {
			return misused("--%s: name a store of the Caddyfile", name)
		}
		stores[name] = store
	}
	now := time.Now()
	for _, name := range []string{"since", "until"} {
		if text, _ := flags.GetString(name); text != "" {
			if stores[name], err = question.ParseMoment(text, now); err != nil {
				return misused("--%s: %w", name, err)
			}
		}
	}
	stores["verify"], _ = flags.GetBool("verify")
	body, err := json.Marshal(stores)
	if err != nil {
		return err
	}
	response, err := callAdmin(cmd, http.MethodPost, "/llm/stores/copy", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	last, err := readCopy(response.Body, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(last.Summary)
	} else {
		err = printCopy(cmd.OutOrStdout(), last.Summary, time.Since(now))
	}
	if c := last.Summary.Comparison; err == nil && c != nil && !c.Same() {
		err = errors.New("the stores differ")
	}
	return err
}

// readCopy reads the events of a copy to the last, and shows its progress on a terminal.
func readCopy(events io.Reader, stderr io.Writer) (last llmadmin.CopyEvent, err error) {
	isTerminal := terminalWidth(stderr) > 0
	for lines := json.NewDecoder(events); last.Summary == nil && last.Error == ""; {
		last = llmadmin.CopyEvent{}
		if err := lines.Decode(&last); err != nil {
			return last, fmt.Errorf("the server broke off (%w): run the command again, and it goes on", err)
		}
		if p := last.Progress; p != nil && isTerminal {
			doing := "copying"
			if p.Comparing {
				doing = "comparing"
			}
			fmt.Fprintf(stderr, "\r\x1b[K%s %s: %s records, up to %s", doing, p.Organisation, formatCount(p.Records), p.At)
		}
	}
	if isTerminal {
		fmt.Fprint(stderr, "\r\x1b[K")
	}
	if last.Error != "" {
		err = fmt.Errorf("%s: run the command again, and it goes on", last.Error)
	}
	return last, err
}

func printCopy(w io.Writer, s *transfer.Summary, took time.Duration) error {
	_, err := fmt.Fprintf(w, "copied %s of %s records of %d organisations, %s annotations, %s conversations, %s of bodies in %v\n", formatCount(s.Copied),
		formatCount(s.Records), s.Organisations, formatCount(s.Annotations), formatCount(s.Conversations), formatBytes(s.Bytes), took.Round(time.Second))
	c := s.Comparison
	if err != nil || c == nil {
		return err
	}
	for _, h := range c.DifferentHours {
		_, err := fmt.Fprintf(w, "%s %s differs: %s, and %s; %s are missing, %s are more, %s are different, %s have other bodies, as %s\n", h.Organisation, h.Start,
			formatSums(h.From), formatSums(h.To), formatCount(h.Missing), formatCount(h.More), formatCount(h.Different), formatCount(h.Bodies), h.Example)
		if err != nil {
			return err
		}
	}
	for _, what := range c.DifferentAnswers {
		if _, err := fmt.Fprintf(w, "%s differs\n", what); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "compared %s hours: %s, and %s; the bodies of %s; %s conversations; %d queries\n", formatCount(int64(c.Hours)),
		formatSums(c.From), formatSums(c.To), formatCount(c.Bodies), formatCount(c.Conversations), c.Queries)
	return err
}

func formatSums(s transfer.Sums) string {
	return fmt.Sprintf("%s records of %v and %s tokens (ids %016x)", formatCount(s.Records), s.Cost, formatCount(s.Tokens), s.IDs)
}
