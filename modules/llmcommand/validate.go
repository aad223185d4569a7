package llmcommand

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/modules/llmapp"
)

// validate is Caddy's command, which also finds addresses that another program has, stores that
// can have no files, and sites that would record calls twice.
func validate(next func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		file, _ := cmd.Flags().GetString("config")
		adapter, _ := cmd.Flags().GetString("adapter")
		file = cmp.Or(file, "Caddyfile")
		if environment, _ := cmd.Flags().GetStringSlice("envfile"); len(environment) > 0 {
			// Only Caddy's command reads these files, and it prints a verdict of its own.
			stdout := os.Stdout
			os.Stdout = nil
			err := next(cmd, args)
			if os.Stdout = stdout; err != nil {
				return err
			}
		}
		if err := checkMachine(file, adapter); err != nil {
			return err
		}
		if err := checkSites(file, adapter); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "Valid configuration") // as Caddy says it
		return err
	}
}

// checkSites provisions a configuration, as Caddy's command does, and finds sites on which two handlers
// would record each call: the app llm looks for them when it starts.
func checkSites(file, adapter string) error {
	text, _, _, err := caddycmd.LoadConfig(file, adapter)
	if err != nil {
		return err
	}
	var config *caddy.Config
	if err := caddy.StrictUnmarshalJSON(caddy.RemoveMetaFields(text), &config); err != nil {
		return fmt.Errorf("decoding config: %w", err)
	}
	ctx, err := caddy.ProvisionContext(config)
	if err != nil {
		return err
	}
	app, err := ctx.AppIfConfigured("llm")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil
	}
	if err != nil {
		return err
	}
	return app.(*llmapp.App).CheckRecorders()
}

// checkMachine finds addresses that another program has, and stores whose folder cannot be made.
// Whether this user, on this machine, may have them says nothing of where Weir will run. Addresses
// of another Weir pass: it is taken to be the Weir that shall get the configuration.
func checkMachine(file, adapter string) error {
	text, _, _, err := caddycmd.LoadConfig(file, adapter)
	if err != nil {
		return err
	}
	var config struct {
		Apps struct {
			HTTP struct {
				Servers map[string]struct {
					Listen []string `json:"listen"`
				} `json:"servers"`
			} `json:"http"`
			LLM struct {
				Stores map[string]struct {
					Storage struct {
						Path string `json:"path"`
					} `json:"storage"`
				} `json:"stores"`
			} `json:"llm"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	stores := config.Apps.LLM.Stores
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		if err := checkFolder(filepath.Dir(stores[name].Storage.Path)); err != nil {
			return fmt.Errorf("the store %s cannot have files: %w; name another path in the store option", name, err)
		}
	}
	servers := config.Apps.HTTP.Servers
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		for _, listen := range servers[name].Listen {
			if err := checkListen(listen); err != nil {
				return fmt.Errorf("%w; stop the program that has it, or listen elsewhere%s", err, lineOf(file, listen))
			}
		}
	}
	return nil
}

// checkFolder makes a folder where that is missing, and removes it again.
func checkFolder(folder string) error {
	there := folder
	for {
		info, err := os.Stat(there)
		switch {
		case err == nil && info.IsDir() && there == folder:
			return nil
		case err == nil && !info.IsDir():
			return &os.PathError{Op: "mkdir", Path: folder, Err: syscall.ENOTDIR}
		case err == nil:
			probe, err := os.MkdirTemp(there, ".weir-validate-")
			if errors.Is(err, os.ErrPermission) {
				return nil
			}
			if err != nil {
				return &os.PathError{Op: "mkdir", Path: folder, Err: errors.Unwrap(err)}
			}
			return os.Remove(probe)
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) || there == filepath.Dir(there):
			return nil // a folder that cannot be seen
		}
		there = filepath.Dir(there)
	}
}

func checkListen(address string) error {
	a, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		return fmt.Errorf("the address %s: %w", address, err)
	}
	if a.IsUnixNetwork() || a.IsFdNetwork() {
		return nil
	}
	for i := range a.PortRangeSize() {
		l, err := a.Listen(context.Background(), i, net.ListenConfig{})
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("the address %s: %w", address, err)
		}
		switch l := l.(type) {
		case net.Listener:
			_ = l.Close()
		case net.PacketConn:
			_ = l.Close()
		}
	}
	return nil
}

// lineOf is where a Caddyfile has the port of an address, "" where it does not say it.
func lineOf(file, address string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	tokens, err := caddyfile.Tokenize(text, file)
	port := address[strings.LastIndexByte(address, ':'):]
	i := slices.IndexFunc(tokens, func(t caddyfile.Token) bool { return strings.HasSuffix(strings.TrimSuffix(t.Text, ","), port) })
	if err != nil || i < 0 {
		return ""
	}
	return fmt.Sprintf(", at %s:%d", file, tokens[i].Line)
}
