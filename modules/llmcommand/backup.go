package llmcommand

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/backup"
	"github.com/weirhq/weir/storage/journal"
)

func backupCommand(cmd *cobra.Command) {
	addAdminFlags(cmd)
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = makeBackup
}

func makeBackup(cmd *cobra.Command, args []string) error {
	asJSON, err := beginAdminOutput(cmd)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	var summary backup.Summary
	answer, err := callAdminJSON(cmd, http.MethodPost, "/llm/backup", map[string]string{"directory": dir}, &summary)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if asJSON {
		_, err := fmt.Fprintf(out, "%s\n", answer)
		return err
	}
	fmt.Fprintln(out, summary.Directory)
	for _, s := range summary.Stores {
		of := ""
		if !s.Database {
			of = "; its journal alone: the backend is backed up by its own means"
		}
		_, err := fmt.Fprintf(out, "store %s: %s files, %s, of which %s are new%s\n", s.Store, formatCount(int64(s.Files)), formatBytes(s.Bytes), formatBytes(s.Copied), of)
		if err != nil {
			return err
		}
	}
	return nil
}

func restoreCommand(cmd *cobra.Command) {
	cmd.Flags().String("store", "", "The store to restore (default: the only one of the backup)")
	cmd.Flags().StringArray("erasures", nil, "A data directory, such as the one that was moved away: what was erased there after the backup is erased again, and the holds in force there are placed")
	cmd.Args = cobra.ExactArgs(2)
	cmd.RunE = restore
}

func restore(cmd *cobra.Command, args []string) error {
	store, err := cmd.Flags().GetString("store")
	if err != nil {
		return err
	}
	erasures, err := cmd.Flags().GetStringArray("erasures")
	if err != nil {
		return err
	}
	restored, err := backup.Restore(cmd.Context(), args[0], args[1], store, erasures...)
	if err != nil {
		return fmt.Errorf("nothing was restored: %w", err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored %s from %s\n", strings.Join(restored.Files, " and "), restored.Backup)
	if err == nil && restored.Erasures > 0 {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s erasures came after the backup: Weir repeats them when it starts\n", formatCount(int64(restored.Erasures)))
	}
	if err == nil && restored.Holds > 0 {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s holds came after the backup: they are in force\n", formatCount(int64(restored.Holds)))
	}
	return err
}

func checkCommand(cmd *cobra.Command) {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = check
}

func check(cmd *cobra.Command, args []string) error {
	file, err := fileChecker()
	if err != nil {
		return err
	}
	reports, problems, err := backup.Check(cmd.Context(), filepath.Clean(args[0]), file)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	for _, r := range reports {
		i := r.Journal.Integrity
		problems = append(problems, r.Problems...)
		records := formatCount(r.Records) + " records in the database"
		if !r.Database {
			records = "the records are on a server, which has its own backups"
		}
		_, err := fmt.Fprintf(out, `%s
	%s, the bodies of %s in %s segments
	%s exchanges seen = %s recorded + %s waiting + %s in flight at the end + %s lost
`, r.Path, records, formatCount(r.Journal.Contents), formatCount(int64(r.Journal.Raw+r.Journal.Sealed)),
			formatCount(i.Seen), formatCount(i.Recorded), formatCount(i.Waiting), formatCount(i.InFlight), formatCount(i.Lost()))
		if err != nil {
			return err
		}
		if err := printLosses(out, i); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n       "))
	}
	_, err = fmt.Fprintln(out, "ok")
	return err
}

// fileChecker is the backend of this binary that keeps a store in a file.
func fileChecker() (storage.Checker, error) {
	for _, m := range caddy.GetModules("llm.storage") {
		if c, ok := m.New().(storage.Checker); ok {
			return c, nil
		}
	}
	return nil, errors.New("this binary has no backend that keeps a store in a file")
}

// printLosses prints what was lost before, and counted.
func printLosses(out io.Writer, i journal.Integrity) (err error) {
	for _, l := range i.Losses {
		_, failed := fmt.Fprintf(out, "\tlost %s exchanges (%s entries) from %s to %s: %s\n", formatCount(l.Exchanges), formatCount(l.Count),
			l.From.Time().Local().Format(time.DateTime), l.To.Time().Local().Format(time.DateTime), l.Reason)
		err = errors.Join(err, failed)
	}
	for _, d := range i.Damage {
		_, failed := fmt.Fprintf(out, "\t%s was found at %s: it %s\n", d.File, d.At.Time().Local().Format(time.DateTime), d.Found)
		err = errors.Join(err, failed)
	}
	return err
}

func forgetCommand(cmd *cobra.Command) {
	cmd.Args = cobra.ExactArgs(2)
	cmd.RunE = forget
}

func forget(cmd *cobra.Command, args []string) error {
	dir, err := backup.Forget(filepath.Clean(args[0]), args[1])
	if err != nil {
		return err
	}
	accepted := args[1] + " is taken as it is in " + dir
	if args[1] == journal.CheckpointName {
		accepted = "files that are not in " + dir + " now are not missed"
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), accepted, "when Weir starts")
	return err
}
