package llmcommand

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Arguments in angle brackets are in the manual pages, which are titled by their command.
func TestManPagesKeepArguments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	root := &cobra.Command{Use: "weir"}
	manpage := &cobra.Command{Use: "manpage", RunE: writeManPages}
	manpage.Flags().String("directory", "", "")
	query := &cobra.Command{Use: "query [<filter>...]", Short: "Shows <what>", Long: "A filter is <field><operator><value>, or cost>1:\n\n\tweir query 'cost>0.01'", Run: func(*cobra.Command, []string) {}}
	query.Flags().Int("limit", 10, "At most <n>")
	root.AddCommand(manpage, query)
	root.SetArgs([]string{"manpage", "--directory", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "weir-query.8"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`.TH "WEIR-QUERY" "8"`, "weir query [<filter>", "Shows <what>", "<field><operator><value>, or cost>1", "weir query 'cost>0.01'", "At most <n>"} {
		if !strings.Contains(string(page), part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
}
