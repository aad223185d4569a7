package llmcommand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/login"
)

func loginCommand(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Bool("key", false, "Keep an API key: that of --key-file, else $"+keyEnv+", else it is asked for")
	f.String("key-file", "", "File whose first line is the API key")
	f.Bool("device", false, "Show a code for a browser on any machine (default: where no browser can be opened)")
	f.String("issuer", "", "Which of the gateway's issuers (default: its only one)")
	f.String("ca", "", "PEM file of a private CA to trust for https (default $"+caEnv+")")
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = runLogin
}

// clientOfLogin is the client of the gateway at an address, else at $WEIR_URL, else of the latest
// login. It trusts the CA that the login trusts.
func clientOfLogin(cmd *cobra.Command, address string) (*client, error) {
	logins, err := login.Open()
	if err != nil {
		return nil, err
	}
	if address = cmp.Or(address, os.Getenv(addressEnv)); address == "" {
		latest, err := logins.Find("")
		if err != nil {
			return nil, err
		}
		address = latest.Address
	}
	c, err := clientAt(cmd, address)
	if err != nil {
		return nil, err
	}
	if saved, err := logins.Find(c.address); err == nil && saved.CA != "" && !cmd.Flags().Changed("ca") {
		if c.http, err = newTrustingClient(saved.CA); err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
	}
	return c, nil
}

// clientOfUser is the client of the gateway that the flags or $WEIR_URL name, else of the latest login, else
// of the quickstart on this machine.
func clientOfUser(cmd *cobra.Command) (*client, error) {
	address, _ := cmd.Flags().GetString("address")
	c, err := clientOfLogin(cmd, address)
	if errors.As(err, new(*login.NoLoginError)) {
		return newClient(cmd)
	}
	return c, err
}

func runLogin(cmd *cobra.Command, args []string) error {
	c, err := clientOfLogin(cmd, strings.Join(args, ""))
	if err != nil {
		return err
	}
	if err := login.CheckAddress(c.address); err != nil {
		return err
	}
	var l login.Login
	if byKey, _ := cmd.Flags().GetBool("key"); byKey || cmd.Flags().Changed("key-file") {
		if c.key == "" {
			if c.key, err = askKey(cmd); err != nil {
				return err
			}
		}
		l.Secret = c.key
	} else {
		if l, err = logInAtIssuer(cmd, c); err != nil {
			return err
		}
		c.key = l.Token
		if l.Secret == "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "Warning: the issuer gave no refresh token, so this login ends at %s: let its client %s have refresh tokens (offline_access).\n", l.EndsAt.Format(time.TimeOnly), printable(l.Client.ID))
		}
	}
	l.Address = c.address
	ca, _ := cmd.Flags().GetString("ca")
	if ca = cmp.Or(ca, os.Getenv(caEnv)); ca != "" {
		if l.CA, err = filepath.Abs(ca); err != nil {
			return err
		}
	}
	if _, err := showOwnKey(cmd, c); err != nil {
		return err
	}
	if err := c.logins.Keep(cmd.Context(), l); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "You are logged in at %s. `weir setup <agent>` sets an agent up, `weir token` prints a token.\n", c.address)
	return err
}

// logInAtIssuer logs in at the issuer that the gateway names, by a browser or a device code.
func logInAtIssuer(cmd *cobra.Command, c *client) (login.Login, error) {
	clients, err := login.Clients(cmd.Context(), c.http, c.address)
	if err != nil {
		return login.Login{}, err
	}
	issuer, _ := cmd.Flags().GetString("issuer")
	var issuers []string
	for _, each := range clients {
		issuers = append(issuers, each.Issuer)
	}
	i := slices.Index(issuers, issuer)
	switch {
	case len(clients) == 0:
		return login.Login{}, fmt.Errorf("%s has no identity with a client_id: use `weir login %[1]s --key`, or let its Caddyfile have one", c.address)
	case issuer == "" && len(clients) > 1:
		return login.Login{}, fmt.Errorf("name one by --issuer: %s", printable(strings.Join(issuers, ", ")))
	case issuer == "":
		i = 0
	case i < 0:
		return login.Login{}, misused("--issuer: expected one of %s", printable(strings.Join(issuers, ", ")))
	}
	flow, err := login.Discover(cmd.Context(), c.http, clients[i])
	if err != nil {
		return login.Login{}, err
	}
	out := cmd.OutOrStdout()
	device, _ := cmd.Flags().GetBool("device")
	if device && !flow.HasDevice {
		return login.Login{}, fmt.Errorf("the issuer %s gives no device codes: leave --device out", clients[i].Issuer)
	}
	if device || flow.HasDevice && !hasBrowser() {
		return flow.Device(cmd.Context(), func(address, code string) {
			fmt.Fprintf(out, "Open %s in a browser, and confirm the code %s.\n", printable(address), printable(code))
		})
	}
	return flow.Browser(cmd.Context(), func(address string) {
		fmt.Fprintf(out, "Your browser opens the login of %s. If it does not, open this address in it:\n\n%s\n\n", clients[i].Issuer, printable(address))
		openBrowser(cmd.Context(), address)
	})
}

// hasBrowser reports whether the user sees a browser that this machine opens.
func hasBrowser() bool {
	if os.Getenv("SSH_CONNECTION") != "" {
		return false
	}
	return runtime.GOOS == "windows" || runtime.GOOS == "darwin" || os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}

// openBrowser opens an address, if it can: the user has been shown it.
func openBrowser(ctx context.Context, address string) {
	command := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	case "darwin":
		command = []string{"open", address}
	}
	browser := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
	if browser.Start() == nil {
		go func() { _ = browser.Wait() }()
	}
}

func tokenCommand(cmd *cobra.Command) {
	cmd.Flags().String("address", "", "Address of the gateway (default $"+addressEnv+", else that of the latest login)")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		address, _ := cmd.Flags().GetString("address")
		c, err := clientOfLogin(cmd, address)
		if err != nil {
			return err
		}
		token, err := c.logins.Fresh(cmd.Context(), c.address, c.http)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
		return err
	}
}

func logoutCommand(cmd *cobra.Command) {
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := clientOfLogin(cmd, strings.Join(args, ""))
		if err != nil {
			return err
		}
		saved, err := c.logins.Find(c.address)
		if err != nil {
			return err
		}
		revoked, err := c.logins.Forget(cmd.Context(), saved, c.http)
		if err != nil {
			return err
		}
		text := "You are logged out of %s.\n"
		switch {
		case saved.TokenURL == "":
			text = "The API key of %s is kept no more. It is still valid.\n"
		case !revoked:
			text = "You are logged out of %s on this machine. The issuer was not told, so a copy of the refresh token stays valid.\n"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), text, c.address)
		return err
	}
}
