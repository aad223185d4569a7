package llmcommand

import (
	"errors"
	"fmt"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

// The exit codes of commands. Other errors have 1.
const (
	// exitMisuse is the exit code for a wrong flag or argument.
	exitMisuse = 2
	// exitDiffers is the exit code for a bill that differs from the records.
	exitDiffers = 3
)

// exit returns the error that makes Caddy end the process with a code.
func exit(code int) error {
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return code, nil })(new(cobra.Command), nil)
}

// misuse is the error of a wrong flag or argument.
type misuse struct{ error }

func (e misuse) Unwrap() []error { return []error{e.error, exit(exitMisuse)} }

// misused is fmt.Errorf for a misuse.
func misused(format string, args ...any) error { return misuse{fmt.Errorf(format, args...)} }

// parseFilter reads the filter that the arguments of a command are.
func parseFilter(args []string) (storage.Filter, error) {
	filter, err := question.ParseFilter(args, time.Now())
	if err != nil {
		return nil, misuse{err}
	}
	return filter, nil
}

// markMisuse makes wrong flags and arguments of a command, and of those below it, a misuse that
// shows the usage.
func markMisuse(cmd *cobra.Command) {
	flagError := cmd.FlagErrorFunc()
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misuse{flagError(cmd, err)} })
	markArguments(cmd)
}

func markArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if _, isWorded := errors.AsType[misuse](err); err == nil || isWorded {
				return err
			}
			return misuse{fmt.Errorf("%w: %s", err, cmd.UseLine())} // cobra's errors name no argument
		}
	}
	for _, below := range cmd.Commands() {
		markArguments(below)
	}
}
