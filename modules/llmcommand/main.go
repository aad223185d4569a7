package llmcommand

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/nearest"
	"github.com/weirhq/weir/modules/llmapp"
)

// binaryName is the name of the binary that has Weir's modules and no others.
const binaryName = "weir"

// commandGroups are the groups in which the help lists commands, before the other ones of Caddy.
var commandGroups = []struct {
	title    string
	commands []string
}{
	{"Calls", []string{"query", "facets", "sessions", "tail", "export", "reconcile", "whatif", "routes", "mcp"}},
	{"Control", []string{"key", "project", "member", "budget", "credits", "alert", "audit", "erase", "hold", "reprice"}},
	{"Coding agents", []string{"look", "setup", "login", "logout", "token", "relay"}},
	{"Operation", []string{"run", "init", "validate", "reload", "stop", "doctor", "health", "stats", "backup", "restore", "check", "forget", "store", "import", "catalog", "hash-key", "demo"}},
}

const caddysOwn = "Caddy"

func groupOf(command string) string {
	for _, g := range commandGroups {
		if slices.Contains(g.commands, command) {
			return g.title
		}
	}
	return caddysOwn
}

// changeCommands changes commands of Caddy, before any of them runs.
func changeCommands(root *cobra.Command) {
	root.Args, root.RunE, root.DisableFlagsInUseLine = refuseUnknownCommand, showHelp, true
	root.SetHelpTemplate((&cobra.Command{}).HelpTemplate()) // without the address of Caddy's manual
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
	}
	root.AddGroup(&cobra.Group{ID: caddysOwn, Title: "Caddy:"})
	root.SetHelpCommandGroupID(caddysOwn)
	for _, cmd := range root.Commands() {
		cmd.GroupID = groupOf(cmd.Name())
		switch cmd.Name() {
		case "run":
			cmd.Short = "Serves a Caddyfile, or a quickstart where there is none"
			cmd.RunE = serve(cmd.RunE)
		case "validate":
			cmd.RunE = validate(cmd.RunE)
		case "manpage":
			cmd.RunE = writeManPages
		}
		if cmd.Flags().Lookup("config") != nil {
			takeFile(cmd)
		}
	}
	markMisuse(root)
	if caddy.CustomBinaryName == binaryName {
		root.Example, root.Version = "", versions()+"\n"
		for _, cmd := range root.Commands() {
			switch cmd.Name() {
			case "version":
				cmd.Short, cmd.Long, cmd.RunE = "Prints the versions of Weir and Caddy", "", printVersions
			case "upgrade", "add-package", "remove-package":
				cmd.Hidden, cmd.RunE = true, refuseDownload
			}
		}
	}
}

// takeFile lets the configuration of a command be its argument.
func takeFile(cmd *cobra.Command) {
	next := cmd.RunE
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return next(cmd, args)
		}
		flags := cmd.Flags()
		if flags.Changed("config") {
			return errors.New("--config and the argument both name a configuration: leave one of them out")
		}
		if err := flags.Set("config", args[0]); err != nil {
			return err
		}
		// Caddy takes a file for JSON unless its name says that it is a Caddyfile.
		if adapter := flags.Lookup("adapter"); adapter != nil && !adapter.Changed && filepath.Ext(args[0]) != ".json" {
			if err := flags.Set("adapter", "caddyfile"); err != nil {
				return err
			}
		}
		return next(cmd, nil)
	}
}

func versions() string {
	_, caddyVersion := caddy.Version()
	commit := llmapp.Commit()
	if commit != "" {
		commit = " (" + commit + ")"
	}
	return fmt.Sprintf("Weir %s%s\nCaddy %s", llmapp.Version(), commit, caddyVersion)
}

func printVersions(cmd *cobra.Command, _ []string) error {
	_, err := fmt.Fprintln(cmd.OutOrStdout(), versions())
	return err
}

func refuseDownload(cmd *cobra.Command, _ []string) error {
	return fmt.Errorf(`%s fetches a binary from caddyserver.com, which has no Weir; install the package of the next release, as docs/operations.md says, or build the one that you want:

	go install %s/xcaddy/weir@latest
	xcaddy build --with %[2]s --with <package>`, cmd.Name(), llmapp.ModulePath)
}

// requireSubcommand refuses a name that no subcommand has: cobra shows the help, and succeeds.
func requireSubcommand(cmd *cobra.Command) {
	cmd.FParseErrWhitelist.UnknownFlags = true // those of the subcommand that was meant
	cmd.Args, cmd.RunE = refuseUnknownCommand, showHelp
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// refuseUnknownCommand takes arguments of a command that only has subcommands: they name none.
func refuseUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	near := nearest.Name(args[0], names)
	if beginAlike := cmd.SuggestionsFor(args[0]); near == "" && len(beginAlike) > 0 {
		near = beginAlike[0]
	}
	if near != "" {
		return misuse{fmt.Errorf("%s has no command %s: did you mean %s?", cmd.CommandPath(), args[0], near)}
	}
	// A flag of the subcommand that stands before it takes its name for a value, as in `key --mine create a`.
	return misuse{fmt.Errorf("%s has no command %s: see %[1]s --help, and write flags after the command", cmd.CommandPath(), args[0])}
}
