package llmcommand

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/modules/internal/bills"
	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/modules/llmadmin"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// adminKeys name the keys that may read bills, unless a flag does.
var adminKeys = map[string]string{
	"openai": "{env.OPENAI_ADMIN_KEY}", "anthropic": "{env.ANTHROPIC_ADMIN_KEY}", "openrouter": "{env.OPENROUTER_MANAGEMENT_KEY}",
}

func reconcileCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	f := cmd.Flags()
	f.String("month", "", "The month to compare, as in 2026-10 (default: the last one; for openrouter, its last 30 days)")
	f.String("since", "", "The first day to compare, as in 2026-10-01")
	f.String("until", "", "The day after the last one")
	f.String("admin-key", "", "The provider's key of an administrator, as {env.NAME} or {file./path}")
	f.StringSlice("key", nil, "The provider's id of a key or project that calls through Weir use, and the account that has it, as in key_123=eu")
	f.StringToString("model", nil, "The model of a name on the bill of a cloud, as in 'Claude4Sonnet=anthropic.claude-sonnet-4'")
	f.String("provider-url", "", "Address of the provider's API (default: the provider's own)")
	f.String("admin", "", "Address of Caddy's admin endpoint, which knows what was lost (default: losses are not known)")
	f.StringP("format", "o", formatTable, "Format: "+strings.Join(adminFormats, ", "))
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = reconcileBill
}

func reconcileBill(cmd *cobra.Command, args []string) error {
	format, _ := cmd.Flags().GetString("format")
	if !slices.Contains(adminFormats, format) {
		return misused("--format: expected one of %s, not %q", strings.Join(adminFormats, ", "), format)
	}
	source := reconcile.Source{Provider: args[0], Files: args[1:]}
	if err := source.Check(); err != nil {
		return misuse{err}
	}
	window, err := reconcileWindow(cmd, source, time.Now())
	if err != nil {
		return misuse{err}
	}
	if window.To > reconcile.DayOf(time.Now().AddDate(0, 0, -1)) {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning: providers report usage late; figures of the last two days may not be complete")
	}
	options := reconcile.Options{Window: window, Keys: reconcileKeys(cmd)}
	if err := reconcile.CheckKeys(options.Keys); err != nil {
		return misused("--key: %w", err)
	}
	options.Models, _ = cmd.Flags().GetStringToString("model")
	if options.Losses, err = reconcileLosses(cmd); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()

	bill, err := readBill(ctx, cmd, source, window)
	if err != nil {
		return err
	}
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	prices, err := readPrices(ctx, c)
	if err != nil {
		return err
	}
	records := reconcile.NewRecords(prices, bill, options.ByAccount())
	if err := readCalls(ctx, c, bill.Providers, window, records); err != nil {
		return err
	}
	report, err := reconcile.Compare(ctx, bill, records, options)
	if err != nil {
		return err
	}
	if err := bills.Link(report); err != nil {
		return err
	}
	if err := printReport(cmd.OutOrStdout(), report, format); err != nil || report.Agrees {
		return err
	}
	cmd.SilenceErrors = true // the report has said it
	return exit(exitDiffers)
}

// reconcileWindow reads which days to compare.
func reconcileWindow(cmd *cobra.Command, source reconcile.Source, now time.Time) (w reconcile.Window, err error) {
	month, _ := cmd.Flags().GetString("month")
	since, _ := cmd.Flags().GetString("since")
	until, _ := cmd.Flags().GetString("until")
	if month != "" && (since != "" || until != "") || (since == "") != (until == "") {
		return w, errors.New("give --month, or --since and --until")
	}
	if since != "" {
		return reconcile.ParseWindow(since, until)
	}
	if month == "" {
		return source.LastWindow(now), nil
	}
	first, err := time.Parse("2006-01", month)
	if err != nil {
		return w, fmt.Errorf("--month: %q is not a month; write it as 2026-10", month)
	}
	return reconcile.Month(first), nil
}

// reconcileKeys reads the ids of keys, with their accounts.
func reconcileKeys(cmd *cobra.Command) map[string]string {
	list, _ := cmd.Flags().GetStringSlice("key")
	keys := make(map[string]string, len(list))
	for _, entry := range list {
		id, account, _ := strings.Cut(entry, "=")
		keys[id] = account
	}
	return keys
}

// reconcileLosses asks the admin endpoint what was lost, if a flag names it.
func reconcileLosses(cmd *cobra.Command) ([]reconcile.Loss, error) {
	if address, _ := cmd.Flags().GetString("admin"); address == "" {
		return nil, nil
	}
	var stores []llmadmin.StoreIntegrity
	if _, err := callAdminJSON(cmd, http.MethodGet, "/weir/integrity", nil, &stores); err != nil {
		return nil, err
	}
	losses := []reconcile.Loss{}
	for _, s := range stores {
		for _, l := range s.Losses {
			if l.Exchanges > 0 {
				losses = append(losses, reconcile.Loss{From: l.From.Time(), To: l.To.Time(), Calls: l.Exchanges})
			}
		}
	}
	return losses, nil
}

// readBill reads the bill of a source, whose key a flag names.
func readBill(ctx context.Context, cmd *cobra.Command, source reconcile.Source, window reconcile.Window) (*reconcile.Bill, error) {
	if len(source.Files) == 0 {
		flags := cmd.Flags()
		reference, _ := flags.GetString("admin-key")
		key, err := bills.AdminKey(cmp.Or(reference, adminKeys[source.Provider]))
		if err != nil {
			return nil, misused("--admin-key: %w", err)
		}
		source.API.Key = key
		source.API.URL, _ = flags.GetString("provider-url")
	}
	return source.Read(ctx, window)
}

// readPrices reads the catalogue by which the server prices calls.
func readPrices(ctx context.Context, c *client) (*catalog.Catalog, error) {
	data, err := c.ask(ctx, http.MethodGet, "/v1/catalog", nil)
	if err != nil {
		return nil, err
	}
	prices, err := catalog.Parse([]byte(data.Raw))
	if err != nil {
		return nil, fmt.Errorf("the catalogue of %s: %w", c.address, err)
	}
	return prices, nil
}

// readCalls adds the calls of a window, and of some days around it.
func readCalls(ctx context.Context, c *client, providers []string, window reconcile.Window, records *reconcile.Records) error {
	padded := window.Padded()
	filter, err := question.ParseFilter(bills.Calls(providers, padded), time.Now())
	if err != nil {
		return err
	}
	p := progress{w: c.stderr}
	cursor := newCursor(c, filter, byStart, 0)
	cursor.columns = callFields
	err = cursor.read(ctx, storage.Millis(padded.From.Time()), func(record gjson.Result) error {
		call, err := callOf(record)
		if err != nil {
			return err
		}
		records.Add(call)
		p.add(cursor.newest)
		return nil
	})
	if terminalWidth(p.w) > 0 {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	return err
}

// callFields are the fields that callOf reads.
var callFields = []string{
	"request_id", "request_created_at", "response_created_at", "provider", "account", "model", "response_model", "request_model", "service_tier",
	"inference_geo", "response_id", "response_status", "end_state", "cache_reference_id", "is_subscription", "is_cost_counted", "cost", "list_cost",
	"prompt_tokens", "completion_tokens", "prompt_cache_read_tokens", "prompt_cache_write_tokens", "prompt_cache_write_1h_tokens",
	"reasoning_tokens", "web_searches",
}

// callOf reads what is compared of a record.
func callOf(record gjson.Result) (*reconcile.Call, error) {
	text := func(field string) string { return record.Get(field).Str }
	count := func(field string) plugins.Count {
		value := record.Get(field)
		return plugins.Count{N: value.Int(), Valid: value.Type == gjson.Number}
	}
	cost := func(field string) plugins.Cost {
		value := record.Get(field)
		return plugins.Cost{N: nanodollars(value.Num), Valid: value.Type == gjson.Number}
	}
	start, err := storage.ParseTimestamp(text("request_created_at"))
	if err != nil {
		return nil, fmt.Errorf("the record %s has no time: %w", text("request_id"), err)
	}
	end := start
	if at := text("response_created_at"); at != "" {
		if end, err = storage.ParseTimestamp(at); err != nil {
			return nil, fmt.Errorf("the record %s: response_created_at: %w", text("request_id"), err)
		}
	}
	call := &reconcile.Call{
		Start: start.Time(), End: end.Time(), Provider: text("provider"), Name: text("model"), Tier: text("service_tier"), Geography: text("inference_geo"),
		Account: text("account"), ResponseID: text("response_id"), Status: record.Get("response_status").Int(),
		Complete: text("end_state") == storage.Complete.String(), Cached: record.Get("cache_reference_id").Type != gjson.Null,
		Subscription: record.Get("is_subscription").Bool(), Estimated: record.Get("is_cost_counted").Bool(),
		Cost: cost("cost"), ListCost: cost("list_cost"),
		Usage: plugins.Usage{
			Input: count("prompt_tokens"), Output: count("completion_tokens"), CacheRead: count("prompt_cache_read_tokens"),
			CacheWrite: count("prompt_cache_write_tokens"), CacheWrite1h: count("prompt_cache_write_1h_tokens"),
			Reasoning: count("reasoning_tokens"), WebSearches: count("web_searches"),
		},
	}
	for _, field := range []string{"response_model", "request_model", "model"} {
		if call.Model = text(field); call.Model != "" {
			break
		}
	}
	return call, nil
}

func printReport(w io.Writer, r *reconcile.Report, format string) error {
	if format == formatJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}
	sums := &grid{w: w, headings: []string{strings.ToUpper(strings.Join(r.Providers, " ")), "REQUESTS", "TOKENS", "COST"}, right: []bool{false, true, true, true}, yields: make([]bool, 4)}
	for _, row := range []struct {
		name string
		reconcile.Sum
	}{{"billed", r.Billed}, {"recorded", r.Recorded}} {
		sums.add([]string{row.name, countText(row.Requests), formatCount(row.Tokens.Total), costText(row.Cost)})
	}
	if err := sums.flush(); err != nil {
		return err
	}
	if err := printDifferences(w, r.Differences); err != nil {
		return err
	}
	if len(r.Incomparable) > 0 {
		fmt.Fprintln(w, "\nNot compared:")
		for _, i := range r.Incomparable {
			day := ""
			if i.Day != nil {
				day = i.Day.String() + " "
			}
			fmt.Fprintf(w, "  %s%s: %s\n", day, printable(i.Description), costText(i.Amount))
		}
	}
	verdict := fmt.Sprintf("Differences from %s to %s: %d", r.From, r.To, len(r.Differences))
	if r.Agrees {
		verdict = fmt.Sprintf("The bill and the records agree to the cent from %s to %s", r.From, r.To)
		switch {
		case r.Billed.Tokens.Total == 0 && r.Billed.Cost.N == 0:
			verdict = fmt.Sprintf("Nothing that can be compared was billed or recorded from %s to %s: check the month, and that the bill has it", r.From, r.To)
		case !r.Billed.Cost.Valid:
			verdict = fmt.Sprintf("The tokens of the bill and of the records agree from %s to %s; the bill has no costs", r.From, r.To)
		}
	}
	if r.Rounding.N != 0 {
		verdict += fmt.Sprintf("; %s is rounding", r.Rounding.N)
	}
	_, err := fmt.Fprintf(w, "\n%s.\n", verdict)
	return err
}

// printDifferences prints a table of differences, and what explains each.
func printDifferences(w io.Writer, differences []reconcile.Difference) error {
	if len(differences) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	g := &grid{w: w, headings: []string{"DAY", "MODEL", "TIER", "REASON", "REQUESTS", "TOKENS", "COST"}, right: []bool{false, false, false, false, true, true, true}, yields: make([]bool, 7)}
	for _, d := range differences {
		g.add([]string{d.Day.String(), printable(d.Model), printable(d.Tier), string(d.Reason), countText(d.Requests), formatCount(d.Tokens.Total), costText(d.Cost)})
	}
	if err := g.flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, d := range differences {
		at := d.Day.String() + " " + printable(d.Model)
		if d.Key != "" {
			at += " at " + printable(d.Key)
		}
		fmt.Fprintf(w, "%s: %s: %s\n", at, d.Reason, printable(d.Explanation))
		if d.Query != "" {
			fmt.Fprintf(w, "  %s\n", printable(d.Query))
		}
	}
	return printRemedies(w, differences)
}

// printRemedies prints what to do about the differences of each reason, and what they add up to.
func printRemedies(w io.Writer, differences []reconcile.Difference) error {
	fmt.Fprintln(w)
	g := &grid{w: w, headings: []string{"REASON", "DIFFERENCES", "COST", "WHAT TO DO"}, right: []bool{false, true, true, false}, yields: make([]bool, 4)}
	for _, r := range remedies {
		n, sum := int64(0), plugins.KnownCost(0)
		for _, d := range differences {
			if d.Reason == r.reason {
				n++
				sum = plugins.Cost{N: sum.N + d.Cost.N, Valid: sum.Valid && d.Cost.Valid}
			}
		}
		if n > 0 {
			g.add([]string{string(r.reason), formatCount(n), costText(sum), r.remedy})
		}
	}
	return g.flush()
}

// remedies are what to do about the differences of each reason.
var remedies = []struct {
	reason reconcile.Reason
	remedy string
}{
	{reconcile.Outside, "look up the key at the provider, and rotate it if it leaked"},
	{reconcile.Lost, "weir stats says why records were lost"},
	{reconcile.Failed, "nothing, if the command shows calls that failed or broke off: the provider bills them"},
	{reconcile.NoUsage, "let clients of Chat Completions set stream_options.include_usage; for others, nothing: the provider bills what the answers do not state"},
	{reconcile.Reasoning, "report it to Weir, with the request_id of a call that the command shows"},
	{reconcile.Duplicate, "let the proxy or OpenTelemetry report these calls, and not both"},
	{reconcile.Tier, "nothing: the two rows add up to the difference of the price"},
	{reconcile.Cache, "nothing, if clients chose that cache: its price is the difference"},
	{reconcile.Timing, "nothing: the two rows add up to 0, unless one of them is in another month"},
	{reconcile.TimeZone, "export the bill with days of UTC, or compare whole months"},
	{reconcile.Unbilled, "compare again in two days, and with every account of the provider"},
	{reconcile.Price, "put the price of your contract into the catalogue file, and run weir reprice"},
	{reconcile.Discount, "put the prices of your contract into the catalogue file, and run weir reprice"},
	{reconcile.Unpriced, "put the price into the catalogue file, and run weir reprice"},
	{reconcile.Unknown, "look at the calls that the command shows, and ask the provider for its lines of the day"},
}

func countText(n plugins.Count) string {
	if !n.Valid {
		return "–"
	}
	return formatCount(n.N)
}

func costText(c plugins.Cost) string {
	if !c.Valid {
		return "–"
	}
	return c.N.String()
}
