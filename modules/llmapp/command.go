package llmapp

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "hash-key",
		Short: "Hashes an API key for the configuration",
		Long: `
Reads an API key from the terminal, without showing it, or from the first line
of standard input, and prints what stands for it in the configuration:

	key sha256:<hex>

Weir compares keys by this hash, so the key itself need not be configured.
Choose keys that cannot be guessed, such as those of 'openssl rand -hex 32'.`,
		CobraFunc: func(cmd *cobra.Command) {
			cmd.Args = cobra.NoArgs
			cmd.RunE = caddycmd.WrapCommandFuncForCobra(hashKey)
		},
	})
}

func hashKey(caddycmd.Flags) (int, error) {
	secret, err := readSecret()
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	if secret == "" {
		return caddy.ExitCodeFailedStartup, errors.New("the key is empty")
	}
	fmt.Printf("sha256:%x\n", sha256.Sum256([]byte(secret)))
	return caddy.ExitCodeSuccess, nil
}

func readSecret() (string, error) {
	if fd := int(os.Stdin.Fd()); term.IsTerminal(fd) {
		fmt.Fprint(os.Stderr, "API key: ")
		secret, err := term.ReadPassword(fd)
		fmt.Fprintln(os.Stderr)
		return string(secret), err
	}
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if line == "" && err != nil {
		return "", fmt.Errorf("reading the key: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}
