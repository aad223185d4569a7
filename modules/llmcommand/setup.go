package llmcommand

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
	"golang.org/x/term"

	"github.com/weirhq/weir/internal/clientconfig"
	"github.com/weirhq/weir/internal/login"
)

func setupCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	f := cmd.Flags()
	f.StringSlice("model", nil, "The models to offer, the default one first (default: the agent's own; all of the gateway for an agent without a list)")
	f.Bool("project", false, "Change the configuration of this folder, not the user's")
	f.Bool("login", false, "Call with fresh tokens of your login (default: if you are logged in at the gateway, and give no key)")
	f.Bool("print", false, "Show the change alone")
	f.Bool("undo", false, "Undo the set-up")
	f.Bool("yes", false, "Write without asking")
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgs = clientNames()
	cmd.RunE = setup
}

func clientNames() (names []string) {
	for _, c := range clientconfig.Clients {
		names = append(names, c.Name)
	}
	return names
}

func setup(cmd *cobra.Command, args []string) error {
	i := slices.IndexFunc(clientconfig.Clients, func(c *clientconfig.Client) bool { return c.Name == args[0] })
	if i < 0 {
		return fmt.Errorf("%q: expected one of %s", args[0], strings.Join(clientNames(), ", "))
	}
	agent := clientconfig.Clients[i]
	project := ""
	if here, _ := cmd.Flags().GetBool("project"); here {
		project = "."
	}
	if undo, _ := cmd.Flags().GetBool("undo"); undo {
		return undoSetup(cmd, agent, project)
	}
	c, err := clientOfUser(cmd)
	if err != nil {
		return err
	}
	gateway, err := gatewayOf(cmd, c, agent)
	if err != nil {
		return err
	}
	gateway.Models, _ = cmd.Flags().GetStringSlice("model")
	if err := checkKey(cmd, c, agent, &gateway); err != nil {
		return err
	}
	if served, err := c.serves(cmd.Context(), agent.Path); err != nil {
		return err
	} else if !served {
		lane, _, _ := strings.Cut(strings.TrimPrefix(agent.Path, "/"), "/")
		return fmt.Errorf("%s needs the path /%s, which %s does not have: add `handle_path /%[2]s/* { llm_proxy %[2]s https://… }` to its site, as docs/llm_proxy.md says", agent.Title, lane, c.address)
	}
	if agent.Steps != nil {
		_, err := io.WriteString(cmd.OutOrStdout(), agent.Steps(gateway))
		return err
	}
	change, err := agent.Setup(project, gateway)
	if err != nil {
		return err
	}
	if ok, err := confirm(cmd, change); !ok || err != nil {
		return err
	}
	if err := change.Write(); err != nil {
		return err
	}
	reportSetup(cmd, agent, change, gateway, c.address, project != "")
	return nil
}

// reportSetup says what a set-up has done, and what is left for the user to do.
func reportSetup(cmd *cobra.Command, agent *clientconfig.Client, change *clientconfig.Change, gateway clientconfig.Gateway, address string, project bool) {
	out := cmd.OutOrStdout()
	if gateway.Address != address {
		fmt.Fprintf(out, "%s reads its key once, when it starts, so it calls the relay on this machine. Start that before: weir relay --address %s\n", agent.Title, address)
	}
	fmt.Fprintf(out, "%s calls %s from its next start. `weir setup %s --undo%s` undoes it.\n", agent.Title, address, agent.Name, map[bool]string{true: " --project"}[project])
	if agent.Note != "" {
		fmt.Fprintln(out, agent.Note)
	}
	if project && gateway.Key != "" {
		fmt.Fprintf(out, "Keep %s out of version control: it has your key.\n", change.File)
	}
	for _, name := range agent.Overrides {
		if os.Getenv(name) != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "Warning: $%s is set, and %s uses it in place of the file: unset it.\n", name, agent.Title)
		}
	}
}

// gatewayOf is the gateway as the agent calls it: with a key, or by the login at the gateway.
func gatewayOf(cmd *cobra.Command, c *client, agent *clientconfig.Client) (gateway clientconfig.Gateway, err error) {
	byLogin, _ := cmd.Flags().GetBool("login")
	switch _, err := c.logins.Find(c.address); {
	case byLogin && c.key != "":
		return gateway, misused("--login uses no key: leave --key-file out, and unset $" + keyEnv)
	case err == nil && c.key == "":
		byLogin = true
	case byLogin || err != nil && !errors.As(err, new(*login.NoLoginError)):
		return gateway, err
	}
	if !byLogin {
		if c.key == "" && c.address == defaultAddress {
			c.key = demoKey
		}
		if c.key == "" {
			c.key, err = askKey(cmd)
		}
		return clientconfig.Gateway{Address: c.address, Key: c.key}, err
	}
	switch {
	case agent.Steps != nil:
		return gateway, fmt.Errorf("%s calls from its own servers, which have no login of yours: make a key for it with `weir key create`, and give it by --key-file", agent.Title)
	case !agent.TakesCommand:
		return clientconfig.Gateway{Address: "http://" + relayAddress, Key: relayKey}, nil
	}
	weir := "weir"
	if _, err := exec.LookPath(weir); err != nil {
		if weir, err = os.Executable(); err != nil {
			return gateway, err
		}
	}
	return clientconfig.Gateway{Address: c.address, TokenCommand: []string{weir, "token", "--address", c.address}}, nil
}

// askKey asks for the key at a terminal.
func askKey(cmd *cobra.Command) (string, error) {
	if f, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		key, err := readSecret(f, cmd.ErrOrStderr())
		if key != "" || err != nil {
			return strings.TrimSpace(key), err
		}
	}
	return "", errors.New("no API key: give it by --key-file or $" + keyEnv)
}

// checkKey asks the gateway about the key, and tells whose it is. It fills in the models of an
// agent that has no list.
func checkKey(cmd *cobra.Command, c *client, agent *clientconfig.Client, gateway *clientconfig.Gateway) error {
	listed, err := c.ask(cmd.Context(), http.MethodGet, "/v1/models", nil)
	switch {
	case errors.Is(err, errUnreachable):
		return err
	case err != nil:
		return fmt.Errorf("%w; setup needs a site with llm_gateway", err)
	}
	var models []string
	for _, m := range listed.Array() {
		models = append(models, m.Get("id").Str)
	}
	if agent.NeedsModels && len(gateway.Models) == 0 {
		if gateway.Models = models; len(models) == 0 {
			return fmt.Errorf("%s lists no models: give its site a provider, or name models by --model", c.address)
		}
	}
	key, err := showOwnKey(cmd, c)
	if err == nil && !key.Exists() {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s answers, and has %d models.\n", c.address, len(models))
		return err
	}
	if err != nil {
		return err
	}
	var scopes []string
	for _, s := range key.Get("scopes").Array() {
		scopes = append(scopes, s.Str)
	}
	if !slices.Contains(scopes, "gateway") {
		return fmt.Errorf("the key has the scopes %s, and not gateway, which calls of models need: use another, or add the scope with `weir key update %s --scopes gateway`",
			printable(strings.Join(scopes, ", ")), printable(cmp.Or(key.Get("id").Str, "<id>")))
	}
	return nil
}

// showOwnKey asks the gateway whose the key is, and shows it. The key is missing in the answer of a
// gateway that has no llm_control.
func showOwnKey(cmd *cobra.Command, c *client) (gjson.Result, error) {
	out := cmd.OutOrStdout()
	key, err := c.ask(cmd.Context(), http.MethodGet, "/v1/key", nil)
	switch refused := new(statusError); {
	case errors.As(err, &refused) && (refused.status == http.StatusNotFound || refused.status == http.StatusMethodNotAllowed):
		_, err = fmt.Fprintf(out, "%s has no llm_control to ask about the key.\n", c.address)
		return gjson.Result{}, err
	case err != nil:
		return gjson.Result{}, err
	}
	if name := key.Get("name").Str; name != "" {
		fmt.Fprintf(out, "The key is %s of %s.", printable(name), printable(key.Get("organization").Str))
	} else { // a token, or a key of the configuration
		name := key.Get("organization").Str
		if user := key.Get("user").Str; user != "" {
			name = user + " of " + name
		}
		fmt.Fprintf(out, "You call as %s.", printable(name))
	}
	if name := key.Get("project").Str; name != "" {
		fmt.Fprintf(out, " Project: %s.", printable(name))
	}
	for _, b := range key.Get("budgets").Array() {
		fmt.Fprintf(out, " Budget %s: %s.", printable(b.Get("name").Str), budgetLeft(b))
	}
	if credits := key.Get("credits"); credits.IsObject() {
		fmt.Fprintf(out, " Credits: %s.", nanodollars(credits.Get("balance").Num))
	}
	_, err = fmt.Fprintln(out)
	return key, err
}

// budgetLeft tells what is left of a budget that counts each call of a key.
func budgetLeft(budget gjson.Result) string {
	limit, remaining := budget.Get("limit").Num, budget.Get("accounts.0.remaining")
	if !remaining.Exists() { // nothing is counted yet
		remaining = budget.Get("limit")
	}
	if quantity := budget.Get("quantity").Str; quantity != "usd" {
		return fmt.Sprintf("%.0f left of %.0f %s", remaining.Num, limit, printable(quantity))
	}
	if limit < 1 { // of cents, each counts
		return fmt.Sprintf("%s left of %s", nanodollars(remaining.Num), nanodollars(limit))
	}
	return fmt.Sprintf("$%.2f left of $%.2f", remaining.Num, limit)
}

func undoSetup(cmd *cobra.Command, agent *clientconfig.Client, project string) error {
	if agent.Steps != nil {
		return fmt.Errorf("%s keeps its settings in no file: take them back where you have made them", agent.Title)
	}
	change, err := agent.Undo(project)
	if err != nil {
		return err
	}
	if ok, err := confirm(cmd, change); !ok || err != nil {
		return err
	}
	if err := change.Revert(); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	switch {
	case change.Delete:
		fmt.Fprintf(out, "%s is gone, with the settings of Weir.\n", change.File)
	case change.Edited:
		fmt.Fprintf(out, "You have edited %s since: only the settings of Weir are taken out.\n", change.File)
	default:
		fmt.Fprintf(out, "%s is what it was.\n", change.File)
	}
	for _, name := range change.Kept {
		fmt.Fprintf(out, "%s stays: you have changed it since.\n", name)
	}
	return nil
}

// confirm shows a change, and asks whether to write it.
func confirm(cmd *cobra.Command, change *clientconfig.Change) (bool, error) {
	undo, _ := cmd.Flags().GetBool("undo")
	if err := writeDiff(cmd.OutOrStdout(), change, undo); err != nil {
		return false, err
	}
	if alone, _ := cmd.Flags().GetBool("print"); alone {
		return false, nil
	}
	if yes, _ := cmd.Flags().GetBool("yes"); yes {
		return true, nil
	}
	fmt.Fprint(cmd.ErrOrStderr(), "Write this? [y/N] ")
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && line == "" {
		return false, errors.New("nothing is written: no answer; --yes writes without asking")
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return false, errors.New("nothing is written")
	}
	return true, nil
}

// secretValue is the rest of a line from the value of what its name says to be a secret.
var secretValue = regexp.MustCompile(`(?i)((?:key|token|secret|password|headers|authorization)["']?\s*[:=]\s*).*?(,?\s*)$`)

// writeDiff shows what becomes of the settings of Weir, without secrets. Nothing else of the file is
// shown, which may have secrets of its own, and neither is a value that the user has set.
func writeDiff(w io.Writer, change *clientconfig.Change, undo bool) error {
	var b strings.Builder
	fmt.Fprintln(&b, change.File)
	for _, edit := range change.Edits {
		for _, side := range []struct {
			sign string
			text *string
			ours bool
		}{{"-", edit.Before, undo}, {"+", edit.After, !undo}} {
			switch {
			case side.text == nil:
			case !side.ours:
				fmt.Fprintf(&b, "%s %s: …\n", side.sign, edit.Setting)
			default:
				for line := range strings.Lines(edit.Setting + ": " + *side.text) {
					fmt.Fprintf(&b, "%s %s\n", side.sign, secretValue.ReplaceAllString(strings.TrimRight(line, "\r\n"), "$1…$2"))
				}
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
