package llmcommand

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// writeManPages takes the place of Caddy's command, whose pages are all titled Caddy(8) and lose
// what is in angle brackets: they are made of Markdown, which takes that for HTML.
func writeManPages(cmd *cobra.Command, _ []string) error {
	dir, _ := cmd.Flags().GetString("directory")
	if dir == "" {
		return misused("--directory: name the directory of the pages")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cmd.Root()
	escapeBrackets(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "8", Source: "Weir", Manual: "Weir"}, dir)
}

// escapeBrackets escapes the angle brackets of the texts of a command and its subcommands.
func escapeBrackets(cmd *cobra.Command) {
	escape := strings.NewReplacer("<", `\<`, ">", `\>`).Replace
	lines := strings.Split(cmd.Long, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "\t") { // code, where a backslash is one
			lines[i] = escape(line)
		}
	}
	cmd.Use, cmd.Short, cmd.Long = escape(cmd.Use), escape(cmd.Short), strings.Join(lines, "\n")
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = escape(f.Usage) })
	for _, sub := range cmd.Commands() {
		escapeBrackets(sub)
	}
}
