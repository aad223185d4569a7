package llmcommand

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/weirhq/weir/modules/llmapp"
)

// Main runs the command line of the binary weir and ends the process. It is
// Caddy's, but for what would speak of Caddy or replace the binary by one without
// Weir: help, version, upgrade, add-package and remove-package. And validate looks at
// the ports, too.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == "validate" {
		if err := checkPorts(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(caddy.ExitCodeFailedStartup)
		}
	}
	if own := ownCommand(os.Args[1:]); own != nil {
		if err := own(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(caddy.ExitCodeFailedStartup)
		}
		return
	}
	caddycmd.Main()
}

// ownCommand is what takes the place of a command of Caddy, nil for all others.
func ownCommand(args []string) func(io.Writer) error {
	if len(args) == 0 {
		return help
	}
	switch args[0] {
	case "help", "--help", "-h":
		if len(args) == 1 { // Caddy knows the help of a command
			return help
		}
	case "version", "--version", "-v":
		return version
	case "upgrade", "add-package", "remove-package":
		return func(io.Writer) error {
			return fmt.Errorf(`%s fetches a binary from caddyserver.com, which has no Weir; install the package of the next release, as docs/operations.md says, or build the one that you want:

	go install %s/xcaddy/weir@latest
	xcaddy build --with %[2]s/modules/standard --with <package>`, args[0], llmapp.ModulePath)
		}
	}
	return nil
}

func help(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\nCommands:\n\n", caddy.CustomLongDescription)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	commands := caddycmd.Commands()
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		if ownCommand([]string{name}) == nil {
			fmt.Fprintf(table, "  %s\t%s\n", name, commands[name].Short)
		}
	}
	fmt.Fprintf(table, "  version\tPrints the versions of Weir and Caddy\n")
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, "\n'weir help <command>' says more about one.\n")
	return err
}

func version(w io.Writer) error {
	_, caddyVersion := caddy.Version()
	commit := llmapp.Commit()
	if commit != "" {
		commit = " (" + commit + ")"
	}
	_, err := fmt.Fprintf(w, "Weir %s%s\nCaddy %s\n", llmapp.Version(), commit, caddyVersion)
	return err
}
