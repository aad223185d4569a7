package llmcommand

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/modules/llmadmin"
	"github.com/weirhq/weir/modules/llmapp"
)

func doctorCommand(cmd *cobra.Command) {
	addAdminFlags(cmd)
	cmd.Args = cobra.NoArgs
	cmd.RunE = doctor
}

func doctor(cmd *cobra.Command, _ []string) error {
	asJSON, err := beginAdminOutput(cmd)
	if err != nil {
		return err
	}
	var report llmadmin.Report
	answer, err := callAdminJSON(cmd, http.MethodGet, "/llm/doctor", nil, &report)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if asJSON {
		if _, err := fmt.Fprintf(out, "%s\n", answer); err != nil {
			return err
		}
	} else if report.Version != llmapp.Version() || report.Commit != llmapp.Commit() {
		report.Findings = append(report.Findings, llmadmin.Finding{
			Level: llmadmin.Warning, About: "version", Found: fmt.Sprintf("this binary is %s (%s), the process %s (%s)", llmapp.Version(), llmapp.Commit(), report.Version, report.Commit), Fix: "restart Weir",
		})
	}
	failed := 0
	for _, f := range report.Findings {
		if f.Level == llmadmin.Error {
			failed++
		}
		if asJSON {
			continue
		}
		fmt.Fprintf(out, "%-8s%s: %s\n", f.Level, f.About, printable(f.Found))
		if f.Fix != "" {
			fmt.Fprintf(out, "%-8s%s\n", "", f.Fix)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d errors", failed)
	}
	return nil
}
