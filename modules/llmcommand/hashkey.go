package llmcommand

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

var errArguments = misuse{errors.New("hash-key takes no arguments, which others can read in the list of processes: " +
	"give the key on standard input, and choose another, for your shell may have kept this one")}

func hashKeyCommand(cmd *cobra.Command) {
	// Cobra's own error repeats the arguments, and this one may be the key.
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return errArguments
		}
		return nil
	}
	cmd.SetFlagErrorFunc(func(*cobra.Command, error) error { return errArguments }) // a key may begin with a dash
	cmd.RunE = hashKey
}

func hashKey(cmd *cobra.Command, _ []string) error {
	secret, err := readSecret(cmd.InOrStdin(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if secret == "" {
		return errors.New("the key is empty")
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "sha256:%x\n", sha256.Sum256([]byte(secret)))
	return err
}

// readSecret asks for a secret at a terminal, or reads the first line of in.
func readSecret(in io.Reader, prompt io.Writer) (string, error) {
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(prompt, "API key: ")
		secret, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(prompt)
		return string(secret), err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if line == "" && err != nil {
		return "", fmt.Errorf("reading the key: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}
