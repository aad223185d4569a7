package llmcommand

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/term"

	"github.com/weirhq/weir/examples/quickstart"
	"github.com/weirhq/weir/modules/llmadmin"
	"github.com/weirhq/weir/modules/llmapp"
)

func initCommand(cmd *cobra.Command) {
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = writeCaddyfile
}

func writeCaddyfile(cmd *cobra.Command, args []string) error {
	name := "Caddyfile"
	if len(args) == 1 {
		name = args[0]
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and stays as it is: name another file behind init, or remove %[1]s", name)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(quickstart.Caddyfile)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s: `%s run %[1]s` serves it\n", name, cmd.Root().Name())
	return err
}

// serve is the command run of Caddy, which also serves the quickstart if there is no configuration,
// and refuses to share an admin endpoint with another process.
func serve(next func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		flags := cmd.Flags()
		if !flags.Changed("pingback") { // weir start leaves its terminal
			endOnHangup()
		}
		file, _ := flags.GetString("config")
		adapter, _ := flags.GetString("adapter")
		resume, _ := flags.GetBool("resume")
		if environment, _ := flags.GetStringSlice("envfile"); len(environment) > 0 {
			return next(cmd, args) // Caddy reads it later, and the configuration depends on it
		}
		_, err := os.Stat("Caddyfile")
		first := file == "" && !resume && errors.Is(err, fs.ErrNotExist) && caddy.CustomBinaryName == binaryName
		text := quickstart.Caddyfile
		switch {
		case first:
			if flags.Changed("pingback") { // from the command start
				return errors.New("there is no Caddyfile here: name one, or write one by `weir init`")
			}
			file, adapter = "-", "caddyfile"
			if err := errors.Join(flags.Set("config", file), flags.Set("adapter", adapter)); err != nil {
				return err
			}
		case resume:
			file, adapter = caddy.ConfigAutosavePath, ""
		case file == "-":
			if text, err = io.ReadAll(os.Stdin); err != nil {
				return err
			}
		}
		onTerminal := first && term.IsTerminal(int(os.Stderr.Fd()))
		if onTerminal && os.Getenv("WEIR_LOG_LEVEL") == "" {
			os.Setenv("WEIR_LOG_LEVEL", "ERROR") // the warnings are of providers without keys
		}
		address := adminAddress(file, adapter, text)
		if err := claimAdmin(address); err != nil {
			return err
		}
		if file == "-" {
			if err := giveStdin(text); err != nil {
				return err
			}
		}
		switch {
		case caddy.CustomBinaryName != binaryName || address == "":
		case first:
			go welcome(cmd.Context(), cmd.ErrOrStderr(), address, quickstart.Key)
		case term.IsTerminal(int(os.Stderr.Fd())):
			go welcome(cmd.Context(), cmd.ErrOrStderr(), address, "")
		default:
			go func() {
				if _, site := waitUntilServed(cmd.Context(), address); site != "" {
					caddy.Log().Info("serving the dashboard", zap.String("address", site))
				}
			}()
		}
		return explain(cmd, next(cmd, args))
	}
}

// endOnHangup ends this process as SIGTERM does when its terminal closes, unless nohup started it.
// Caddy ignores the signal: the process would go on unseen, and keep its address.
func endOnHangup() {
	if signal.Ignored(syscall.SIGHUP) {
		return
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		<-hangup
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Signal(syscall.SIGTERM) // Windows sends no SIGHUP
		}
	}()
}

// explain repeats an error that Caddy has logged: without the path through Caddy's modules, which
// comes first and hides what is wrong.
func explain(cmd *cobra.Command, err error) error {
	if err != nil && cmd.SilenceErrors {
		cmd.PrintErrln("Error:", modulePath.ReplaceAllString(err.Error(), ""))
	}
	return err
}

// modulePath is what Caddy writes before what a module says.
var modulePath = regexp.MustCompile(`^((loading (initial|new) config|loading \S+ app module|\S+ app module|start|provision [\w.]+|server \S+|setting up [\w ]+|loading handler modules|loading module '[^']*'|(route|position|decoding module config|validate)[ \w]*): )+`)

// giveStdin lets a text be read from the standard input.
func giveStdin(text []byte) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	os.Stdin = r
	go func() {
		_, _ = w.Write(text) // nobody reads the rest when this fails
		w.Close()
	}()
	return nil
}

// adminAddress is where a configuration has its admin endpoint, "" if nowhere, or if Caddy
// will say what is wrong with the configuration.
func adminAddress(file, adapter string, stdin []byte) string {
	if file == "-" && giveStdin(stdin) != nil {
		return ""
	}
	// Caddy reads the same configuration again, and logs what it finds.
	_, logger, _ := caddy.BufferedLog()
	text, _, _, err := caddycmd.LoadConfig(file, adapter)
	caddy.UnbufferDefaultLogger(zap.NewNop())
	caddy.BufferedLog()
	caddy.UnbufferDefaultLogger(logger)
	var config struct {
		Admin struct {
			Listen   string `json:"listen"`
			Disabled bool   `json:"disabled"`
		} `json:"admin"`
	}
	if err != nil || json.Unmarshal(text, &config) != nil && len(text) > 0 || config.Admin.Disabled {
		return ""
	}
	return cmp.Or(caddy.NewReplacer().ReplaceAll(config.Admin.Listen, ""), caddy.DefaultAdminListen)
}

// claimAdmin makes sure that no other process has the admin endpoint. Caddy listens with
// SO_REUSEPORT: with two processes at one address, each command would reach either.
func claimAdmin(address string) error {
	a, err := caddy.ParseNetworkAddress(address)
	if err != nil || a.IsFdNetwork() || !a.IsUnixNetwork() && a.StartPort == 0 {
		return nil //nolint:nilerr // Caddy says what is wrong, or nobody else can have it
	}
	var claimed error
	if !a.IsUnixNetwork() {
		claimed = llmapp.ClaimAddress(a.JoinHostPort(0)) // the other one may just start
	}
	other, err := net.DialTimeout(a.Network, a.JoinHostPort(0), time.Second)
	if err != nil {
		return claimed
	}
	other.Close()
	who := "another program"
	if p, err := fetchProcess(address); err == nil {
		who = p.String()
	}
	return fmt.Errorf("the admin endpoint %s is taken: %s; stop it, or give this one another by the global option admin", address, who)
}

// startTimeout bounds how long a configuration may take to start before nothing is said of it.
const startTimeout = 10 * time.Second

// welcome says where the dashboard is, as soon as it is served. The first start creates a key
// that administers, and shows it: nobody else reads what this process writes to its terminal.
// Later starts show key, the one that anybody knows; "" shows none.
func welcome(ctx context.Context, w io.Writer, admin, key string) {
	p, site := waitUntilServed(ctx, admin)
	if site == "" {
		return
	}
	if os.Getenv(keyEnv) != "" {
		key = "" // no secret of the user is shown
	}
	created := firstAdminKey(admin)
	if created != "" {
		key = created
	}
	login := ""
	if key != "" {
		login = "/#key=" + url.QueryEscape(key)
	}
	_, database, _ := strings.Cut(p.Stores[0], ":")
	fmt.Fprintf(w, "Dashboard  %s%s\n", site, login)
	if created != "" {
		fmt.Fprintln(w, "Admin key  in this link, shown once: keep it, or create another with `weir key admin`")
	}
	fmt.Fprintf(w, "Base URLs  %s/openai/v1, %[1]s/anthropic, %[1]s/gemini; every provider: %[1]s/v1\n", site)
	fmt.Fprintf(w, "Data       %s; `weir demo` adds made-up traffic, `weir init` writes a Caddyfile to keep\n", filepath.Clean(database))
}

// waitUntilServed waits until this process serves, and returns the address of its dashboard, "" if it has
// none.
func waitUntilServed(ctx context.Context, admin string) (p *llmadmin.Process, site string) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		var err error
		switch p, err = fetchProcess(admin); {
		case err != nil, p.ID != os.Getpid(), len(p.Sites) == 0, len(p.Stores) == 0:
		case p.Dashboard:
			return p, siteURL(p.Sites[0])
		default:
			return p, ""
		}
	}
	return p, ""
}

// siteURL is how a browser of this machine reaches an address that is served.
func siteURL(address string) string {
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil:
		return "http://" + address
	case host == "" || host == "127.0.0.1":
		host = "localhost"
	}
	if port == "443" {
		return "https://" + host
	}
	return "http://" + net.JoinHostPort(host, port)
}

// firstAdminKey creates a key that administers if there is none, and returns its secret, or "".
func firstAdminKey(admin string) string {
	response, err := caddycmd.AdminAPIRequest(admin, http.MethodPost, "/llm/keys/admin", nil, strings.NewReader(`{"first": true}`))
	if err != nil {
		return "" // `weir doctor` says what is wrong
	}
	defer response.Body.Close()
	var k llmadmin.AdminKey
	if json.NewDecoder(response.Body).Decode(&k) != nil {
		return ""
	}
	return k.Secret
}
