package llmcommand

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/agentlog"
	"github.com/weirhq/weir/internal/login"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// lookAddress is where `weir look` serves unless a flag says otherwise.
const lookAddress = "127.0.0.1:9348"

//go:embed look.Caddyfile
var lookCaddyfile []byte

// serveLook serves the dashboard on what agents have written, and follows their files until it is
// interrupted.
func serveLook(cmd *cobra.Command) error {
	folder, err := lookFolder()
	if err != nil {
		return fmt.Errorf("the index of the calls belongs into your cache folder: %w", err)
	}
	index := filepath.Join(folder, lookIndex)
	c, err := startLook(cmd, filepath.Join(folder, "weir.db"), index)
	if err != nil {
		return err
	}
	defer func() { _ = caddy.Stop() }() // the process ends

	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	refused, err := newRefusals(cmd.ErrOrStderr(), "")
	if err != nil {
		return err
	}
	if err := showDashboard(ctx, cmd.OutOrStdout(), folder, c.address+"/#key="+c.key); err != nil {
		return err
	}
	reader := agentlog.Open(index)
	f := &agentFollower{reader: reader, prices: catalog.Default(), sender: &spanSender{client: c, refused: refused}}
	if err := f.follow(ctx); err != nil {
		return endOf(ctx, err)
	}
	_ = reader.Save() // without an index, the next look reads all files
	_, reports := reader.Calls(time.Time{})
	writeReports(cmd.OutOrStdout(), reports)
	fmt.Fprintln(cmd.OutOrStdout(), "Costs are list prices, which a subscription may cover. Calls appear as agents make them; Ctrl-C ends.")
	for {
		select {
		case <-ctx.Done():
			_ = reader.Save()
			return nil
		case <-time.After(lookInterval):
		}
		if err := f.follow(ctx); err != nil {
			return endOf(ctx, err)
		}
	}
}

// startLook starts the server of the dashboard on a store, and returns a client of it.
func startLook(cmd *cobra.Command, store, index string) (*client, error) {
	listen, _ := cmd.Flags().GetString("listen")
	host, _, err := net.SplitHostPort(listen)
	if err != nil || !login.IsLoopback(host) {
		return nil, misused("--listen %s: expected an address of this machine alone, as in %s", listen, lookAddress)
	}
	if _, err := os.Stat(store); errors.Is(err, fs.ErrNotExist) { // a new store has none of the calls of the index
		_ = os.Remove(index)
	}
	// The key is new with each start: pages of other sites, and other users, do not know it.
	key := rand.Text()
	for name, value := range map[string]string{
		"WEIR_LOOK_STORE": store, "WEIR_LOOK_KEY": key,
		"WEIR_LOOK_ADDRESS": listen, "WEIR_LOOK_HOST": host,
	} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	if other, err := net.DialTimeout("tcp", listen, time.Second); err == nil { // which Caddy would share
		other.Close()
		return nil, fmt.Errorf("%s is taken, perhaps by another `weir look`: name another address by --listen", listen)
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(lookCaddyfile, map[string]any{"filename": "look.Caddyfile"})
	if err != nil {
		return nil, err
	}
	return &client{
		http: http.DefaultClient, address: "http://" + listen, key: key, stderr: cmd.ErrOrStderr(), warned: make(map[string]bool),
		header: http.Header{"Service-Replace": {"true"}}, // by calls that have used more since
	}, caddy.Load(config, true)
}

// showDashboard prints the address of the dashboard, and opens it where there is a browser.
func showDashboard(ctx context.Context, out io.Writer, folder, page string) error {
	fmt.Fprintf(out, "Dashboard  %s\n", page)
	if !hasBrowser() {
		return nil
	}
	// By a file, as others on this machine can read the arguments of programs.
	file := filepath.Join(folder, "open.html")
	redirect := fmt.Sprintf(`<!doctype html><meta http-equiv="refresh" content="0; url=%s">`, page)
	if err := os.WriteFile(file, []byte(redirect), 0o600); err != nil {
		return err
	}
	openBrowser(ctx, file)
	return nil
}

// lookInterval is the pause between two looks at the files.
const lookInterval = 2 * time.Second

// endOf returns nil for an error that the user's interrupt has caused.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the user has ended it
	}
	return err
}

// agentFollower reports what agents write to a site.
type agentFollower struct {
	reader *agentlog.Reader
	prices *catalog.Catalog
	sender *spanSender
}

// follow reports the calls that were not reported yet, and those that have used more since.
func (f *agentFollower) follow(ctx context.Context) error {
	if err := f.reader.Update(time.Time{}); err != nil {
		return err
	}
	for i, c := range f.reader.Take() {
		if err := f.sender.add(ctx, f.span(c), origin{File: c.Agent, Row: int64(i)}); err != nil {
			return err
		}
	}
	return f.sender.flush(ctx)
}

// span is a call as OpenTelemetry describes it. Its ids do not depend on the session: a fork that
// repeats a call has another one.
func (f *agentFollower) span(c *agentlog.Call) *span {
	s := newSpan(c.ID, c.ID, c.At, time.Time{})
	s.text("gen_ai.operation.name", "chat")
	s.text("gen_ai.provider.name", c.Provider)
	s.text("gen_ai.request.model", c.Model)
	s.text("gen_ai.response.service_tier", c.Tier)
	for _, part := range []struct {
		name  string
		count plugins.Count
	}{
		{"input_tokens", c.Usage.Input},
		{"cache_read.input_tokens", c.Usage.CacheRead},
		{"cache_creation.input_tokens", c.Usage.CacheWrite},
		{"cache_creation.ephemeral_1h_input_tokens", c.Usage.CacheWrite1h},
		{"output_tokens", c.Usage.Output},
		{"reasoning.output_tokens", c.Usage.Reasoning},
		{"server_tool_use.web_search_requests", c.Usage.WebSearches},
	} {
		if part.count.Valid {
			s.count("gen_ai.usage."+part.name, part.count.N)
		}
	}
	if c.Beside != nil { // the usage lacks what is billed beside it
		if cost, _ := listPrice(f.prices, c); cost.Valid {
			s.number("gen_ai.usage.cost", cost.N.Dollars())
		}
	}
	s.label("Session-Id", c.Session)
	s.label("Session-Name", shortPath(c.Project))
	s.label("Session-Path", "/"+c.SubAgent)
	s.label("Property-Agent", c.Agent)
	s.label("Property-Project", shortPath(c.Project))
	s.label("Property-Branch", c.Branch)
	return s
}
