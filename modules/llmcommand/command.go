// Package llmcommand adds Weir's commands to Caddy's, by what they use:
//
//   - the query API: query, facets, sessions, tail, export, reconcile, whatif, reprice, erase, hold
//   - llm_control: key, project, member, budget, alert, audit
//   - the gateway: routes
//   - llm_otlp, which gets records: import, demo
//   - the admin endpoint: stats, health, credits, doctor, backup, catalog, store
//   - files of a Weir that does not run: restore, forget, check
//   - coding agents: setup connects them, login, token, logout and relay give them tokens, look reads
//     their files, and mcp answers their questions
//   - the configuration: init, hash-key
//
// Caddy's run, start and validate do more than in Caddy.
package llmcommand

import (
	"os"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func init() {
	for _, c := range []caddycmd.Command{{
		Name:  "query",
		Usage: "[<filter>...]",
		Short: "Shows recorded requests",
		Long: `
Shows the requests that a filter matches, newest first. With --by, shows their
totals: by a field, by time (min, hour, day, week or month), or by both:

	weir query --by model,hour --p95 since=1d` + filterHelp,
		CobraFunc: queryCommand,
	}, {
		Name:  "facets",
		Usage: "[<filter>...]",
		Short: "Shows which values recorded requests have, and how often",
		Long: `
Shows the most frequent values of fields among the requests that a filter matches.` + filterHelp,
		CobraFunc: facetsCommand,
	}, {
		Name:  "sessions",
		Usage: "[<filter>...]",
		Short: "Shows what sessions cost, also those that no caller named",
		Long: `
Shows what the requests of sessions add up to, of those that a filter matches. Requests
that name no session are a derived one with the call that they continue, whose id is
the session's.` + filterHelp,
		CobraFunc: sessionsCommand,
	}, {
		Name:  "key",
		Short: "Shows, creates, changes and deletes API keys",
		Long: `
Administers the API keys of an organisation, by a key of the scope admin, at a site with
llm_control. The first of these is created on the machine of Weir, by its admin endpoint.
A secret is shown once, on standard output:

	weir key admin
	weir key create "search agents" --project search --models 'anthropic/*' --expires 90d
	weir key rotate key_0123456789abcdef0123456789abcdef --overlap 1h

Where a project allows it (weir project keys), you create keys of your own without that scope.
They do no more than you may:

	weir key create laptop --mine
	weir key list --mine`,
		CobraFunc: keyCommand,
	}, {
		Name:  "project",
		Short: "Shows, creates, limits and archives projects",
		Long: `
Administers the projects of an organisation, with a key of the scope admin. A project has
members, keys, and a limit of dollars a month.

	weir project create search mail --limit 500
	weir project limit search 800
	weir project limit search none
	weir project keys search members --max 5 --lifetime 90d
	weir project members search`,
		CobraFunc: projectCommand,
	}, {
		Name:  "member",
		Short: "Shows, invites and removes people",
		Long: `
Administers the people of an organisation, with a key of the scope admin. People log in as
the Caddyfile says (login, identity).

	weir member invite ada@example.com --role owner
	weir member add ada@example.com search
	weir member remove ada@example.com`,
		CobraFunc: memberCommand,
	}, {
		Name:  "audit",
		Short: "Shows who changed what, and who read content",
		Long: `
Shows each change of an API key, a project, a service account or a budget, the newest
first: when, by which key and from which address, and with --format json what the object
was before and after. With --reads, it shows who read content of calls that others have made.`,
		CobraFunc: auditCommand,
	}, {
		Name:  "budget",
		Short: "Shows, creates and deletes budgets",
		Long: `
Shows what the budgets of an organisation count in their present windows, each with
the 200 values that spent the most. The API key needs the scope admin. Budgets that the
configuration does not have are made and ended while Weir runs:

	weir budget set search 500.00 --project search --per user
	weir budget set pace 100 --quantity requests --window 1m --per key
	weir budget delete search`,
		CobraFunc: budgetCommand,
	}, {
		Name:  "routes",
		Short: "Shows where a call would go, and why",
		Long: `
Asks the gateway which targets a call would try, in which order, and why. Nothing is
sent to a provider, charged or recorded. The API key needs the scope gateway:

	weir routes explain smart
	weir routes explain smart --request request.json --header Service-User-Id=ada`,
		CobraFunc: routesCommand,
	}, {
		Name:  "whatif",
		Usage: "[<filter>...] --policy <alias|file|models>",
		Short: "Shows what recorded calls would have cost under another policy",
		Long: `
Prices recorded calls again, as if they had gone by another policy: an alias of the
gateway, a file with one as JSON, or models. It makes no call. Where nobody can know what
they would have cost, it shows the least and the most, and what it assumes:

	weir whatif since=30d --policy openai/gpt-5-mini --by user
	weir whatif since=30d model=smart --policy cheaper.json` + filterHelp,
		CobraFunc: whatIfCommand,
	}, {
		Name:  "alert",
		Short: "Shows alerts, makes rules, tests channels",
		Long: `
Shows which alerts fire, what became of the messages about alerts, and the rules. Makes rules
while Weir runs. Sends a message to a channel to test it. The API key needs the scope admin.

	weir alert list
	weir alert set dear 'cost > 100' --over 1d --per user --to ops
	weir alert test ops
	weir alert redeliver alert_0123456789abcdef0123456789abcdef`,
		CobraFunc: alertCommand,
	}, {
		Name:  "reprice",
		Usage: "<filter>...",
		Short: "Computes the costs of recorded requests again, at the prices of their time",
		Long: `
Shows which costs of the requests that a filter matches the catalogue would change, by model,
and with --yes changes them. A request gets the prices of its own time. Budgets and credits stay
as they are. If it is interrupted, the same command changes the rest. The API key needs the
scope admin.

	weir reprice model=acme-large since=2026-11-01
	weir reprice model=acme-large since=2026-11-01 --yes` + filterHelp,
		CobraFunc: repriceCommand,
	}, {
		Name:  "erase",
		Usage: "[<filter>...]",
		Short: "Erases the requests that match a filter, or a part of them",
		Long: `
Shows how many recorded requests a filter matches, and with --yes erases them from the files
of the store, for good: their bodies, also what names somebody, or all of them. What a hold
keeps is erased once the hold is lifted. Without a filter, it lists the erasures; --format json
has what was searched and what remains. The API key needs the scope admin.

	weir erase user=ada --content
	weir erase user=ada --content --yes
	weir erase` + filterHelp,
		CobraFunc: eraseCommand,
	}, {
		Name:  "hold",
		Short: "Keeps the requests that match a filter from being deleted",
		Long: `
Places holds, lists those in force, and lifts them. Neither retention nor weir erase deletes
the requests that match the filter of a hold, also those that are recorded later. The audit
log says who placed and who lifted a hold. The API key needs the scope admin.

	weir hold place user=ada --reason "case 4711"
	weir hold list
	weir hold lift hold_0123456789abcdef0123456789abcdef`,
		CobraFunc: holdCommand,
	}, {
		Name:  "tail",
		Usage: "[<filter>...]",
		Short: "Shows requests as they end",
		Long: `
Shows the last requests that a filter matches, and further ones as they end,
until interrupted. While the server is away, it waits. Requests that ran for
more than an hour are not shown.` + filterHelp,
		CobraFunc: tailCommand,
	}, {
		Name:  "export",
		Usage: "[<filter>...]",
		Short: "Writes all recorded requests that match a filter",
		Long: `
Writes every request that a filter matches, oldest first, each once: with its
bodies as JSON, or its metrics as CSV.` + filterHelp,
		CobraFunc: exportCommand,
	}, {
		Name:  "reconcile",
		Usage: "openai|anthropic|openrouter|aws|google [<file>...]",
		Short: "Compares the bill of a provider with what is recorded",
		Long: `
Reads what a provider billed, and the calls that were recorded, and says for each day, model and
service tier where they differ and why: in tokens first, then in dollars. Calls that did not go
through Weir are found.

	OPENAI_ADMIN_KEY=$(cat ~/.openai-admin) weir reconcile openai --month 2026-10

The provider's key is one of an administrator, which may read the usage of the organisation. It is
in $OPENAI_ADMIN_KEY, $ANTHROPIC_ADMIN_KEY or $OPENROUTER_MANAGEMENT_KEY, or where --admin-key says.
The bills of AWS (CUR 2.0) and Google Cloud (the billing export) are files.
With --key, calls at other keys of the provider are those that did not go through Weir.

The exit code is 0 if the bill and the records agree, 3 if they differ, and 1 after an error.`,
		CobraFunc: reconcileCommand,
	}, {
		Name:  "stats",
		Short: "Shows the state of the stores",
		Long: `
Shows the state of the stores of a running Weir, and the reconciliation since they
were created: each exchange that was seen is recorded, waits in the journal, is in
flight or was lost, with the reason and the time. Fails when exchanges are
unaccounted for.`,
		CobraFunc: statsCommand,
	}, {
		Name:  "health",
		Short: "Reports whether a running Weir is ready",
		Long: `
Asks a running Weir whether calls would be recorded at once, and fails with the reasons
if they would be lost or late: a probe for containers that have no other program.`,
		CobraFunc: healthCommand,
	}, {
		Name:  "doctor",
		Short: "Finds what is wrong with a running Weir",
		Long: `
Checks whether the stores take records, what was lost, the disk, the providers' keys
and whether they answer, the clock, certificates, and whether the running Weir is this
version. Says how to repair what is wrong, and fails if calls or records are lost, or
soon will be.`,
		CobraFunc: doctorCommand,
	}, {
		Name:  "credits",
		Usage: "[<org> <dollars>]",
		Short: "Shows the credits of organisations, or grants more",
		Long: `
Shows what organisations may still spend on providers that the platform's
credentials pay for. With an organisation and an amount, grants that many US
dollars more:

	weir credits acme 20.00`,
		CobraFunc: creditsCommand,
	}, {
		Name:  "backup",
		Usage: "<directory>",
		Short: "Makes a backup of the stores of a running Weir",
		Long: `
Makes a running Weir copy its stores to a new directory within <directory>, on its own
machine: records, bodies, credits and the secret, as of one moment, while traffic goes
on. Bodies that the previous backup has are not copied again. The configuration and
Caddy's certificates are not in the backup.`,
		CobraFunc: backupCommand,
	}, {
		Name:  "restore",
		Usage: "<backup> <directory>",
		Short: "Copies a store of a backup to a data directory",
		Long: `
Compares the checksums of a backup, and copies a store of it to <directory>. <backup> is
a backup, or a directory of several, of which it takes the newest. Nothing is overwritten: stop Weir, and move the old files away first.`,
		CobraFunc: restoreCommand,
	}, {
		Name:  "forget",
		Usage: "<directory> <file>",
		Short: "Accepts that a file of a store is gone, damaged or older than it was",
		Long: `
Weir refuses the calls that need a store's control.db (keys, members and budgets that were
made while Weir ran), its credits or its erasures, if the file is gone or older than it was.
This command makes the next start take the file as it is: what it lacks is forgotten. A damaged
control.db is renamed to control.db.damaged. After both checkpoint and witness were lost,
checkpoint stands for all files that are not there.
<directory> is a data directory, a database, or the directory of its journal; <file> is
control.db, credits, erasures or checkpoint. Stop Weir first.

	weir forget ./weir-data control.db`,
		CobraFunc: forgetCommand,
	}, {
		Name:  "store",
		Short: "Copies the contents of a store to another one",
		Long: `
Makes a running Weir copy the contents of one store of its Caddyfile to another,
between any backends, while traffic goes on:

	weir store copy --from default --to big --verify

Records come with their bodies, scores, feedback, properties and tags. Nothing is
removed from the other store: run it again to continue after an interruption, or to copy
what is new since. With --verify, it compares every record and body in the end, hour by
hour, and the answers of both to queries; it names what differs, and fails.`,
		CobraFunc: storeCommand,
	}, {
		Name:  "check",
		Usage: "<directory>",
		Short: "Checks that a backup, or a data directory, is complete",
		Long: `
Reads every record and every body of a backup, or of a data directory that no Weir
uses, and changes nothing: the checksums of all parts, the database, whether the database
and the bodies are consistent, the credits, and the reconciliation.`,
		CobraFunc: checkCommand,
	}, {
		Name:  "import",
		Usage: "helicone|langfuse|litellm|litellm-keys|portkey|tensorzero <file>...",
		Short: "Imports the calls that another product has recorded, or its keys",
		Long: `
Reports the calls in files that another product exported to a running Weir with llm_otlp,
and says what a record does not have. A call that is imported again makes no second
record: import again to continue after an error. Of litellm-keys, which are the virtual keys
of LiteLLM, it makes keys with new secrets at a site with llm_control.

	weir import helicone helicone-export.jsonl`,
		CobraFunc: importCommand,
	}, {
		Name:  "demo",
		Short: "Fills the dashboard of a quickstart with made-up traffic",
		Long: `
Reports some days of made-up history to a running quickstart, by OpenTelemetry,
then plays sessions through its /echo until interrupted: users, agents with
tools, errors, scores. It costs nothing and needs no provider. The API key is the
quickstart's unless one is given.

The calls have the job weir-demo. With a key of the scope admin, --remove removes them all:

	weir query job_id=weir-demo
	weir demo --remove`,
		CobraFunc: demoCommand,
	}, {
		Name:  "setup",
		Usage: strings.Join(clientNames(), "|") + " [--login] [--model <name>,...] [--project] [--print] [--undo] [--yes]",
		Short: "Makes a coding agent call Weir, and undoes it",
		Long: `
Shows what it would change in the configuration file of a coding agent, so that the agent calls
the gateway with your key, and writes the file when you confirm. Before, it asks the gateway
about the key, which costs nothing. The rest of the file stays as it is, byte for byte.

	weir setup claude --address https://llm.example.com
	weir setup claude --undo

The file is readable by you alone, because it may have a key. If you are logged in at the gateway
(weir login), there is no key in it: the agent asks weir token, or calls weir relay. --undo makes the file what it was; if
you have edited it since, only the settings of Weir are taken out.
At a terminal, setup asks for the key if none is given.`,
		CobraFunc: setupCommand,
	}, {
		Name:  "login",
		Usage: "[<address>]",
		Short: "Logs you in at a gateway, so that agents need no key",
		Long: `
Logs you in at the issuer that the gateway trusts (identity, with a client_id), by your browser, or
by a code that you enter in a browser elsewhere. With --key, keeps an API key in place of that. The
refresh token, or the key, is in the system's keychain where there is one, else in a file that you
alone can read.

	weir login https://llm.example.com
	weir setup claude`,
		CobraFunc: loginCommand,
	}, {
		Name:  "token",
		Short: "Prints a fresh token of your login",
		Long: `
Prints a token that has at least half of its life before it, as agents ask for it: apiKeyHelper of
Claude Code, auth of Codex.`,
		CobraFunc: tokenCommand,
	}, {
		Name:  "logout",
		Usage: "[<address>]",
		Short: "Forgets your login at a gateway",
		Long: `
Forgets the login, and asks the issuer to revoke it.`,
		CobraFunc: logoutCommand,
	}, {
		Name:  "relay",
		Short: "Lets agents on this machine call a gateway with your login",
		Long: `
Listens on this machine, and sends all requests on to the gateway with a fresh token in place of
their key: for agents that read their key once. Bytes pass as they come. Whoever is on this
machine can use it while it runs; pages of the web cannot.

	weir relay --address https://llm.example.com`,
		CobraFunc: relayCommand,
	}, {
		Name:  "look",
		Short: "Shows what coding agents on this machine have used",
		Long: `
Reads what Claude Code, Codex, opencode and Gemini CLI have written about their sessions in your
home directory, and opens the dashboard on it, which follows what they write. With --today, --since
or --json it shows calls, tokens and costs by day, model, project and branch in the terminal
instead. It needs no server and no key, changes nothing, and sends nothing: an index without
contents is kept in your cache folder. Costs are list prices: calls that a subscription covers are
shown with what they would have cost.

	weir look
	weir look --today
	weir look --since 30d`,
		CobraFunc: lookCommand,
	}, {
		Name:  "mcp",
		Short: "Answers an agent's questions about recorded requests over MCP",
		Long: `
Is a server of the Model Context Protocol on standard input and output, as coding agents
start them. Its tools read what requests cost and by what, why prompts missed the cache, why
calls failed, the dearest sessions, single requests, and what is left of the budgets of the
key. They change nothing, and see what the key may: without the scope query, no content.
Without an address, it asks the gateway of your latest login.

	claude mcp add weir -- weir mcp --address https://llm.example.com --key-file ~/.weir-key`,
		CobraFunc: mcpCommand,
	}, {
		Name:  "catalog",
		Short: "Installs a published catalogue of models and prices",
		Long: `
Verifies a catalogue that was published apart from releases, and installs it if the key of
the option catalog_key has signed it and it is newer than the one in force. The signature is
at the same place, with .minisig at its end. Then Weir loads its configuration again:

	weir catalog update https://prices.example.com/catalog.json
	weir catalog update ./catalog.json`,
		CobraFunc: catalogCommand,
	}, {
		Name:  "hash-key",
		Short: "Hashes an API key for the configuration",
		Long: `
Reads an API key from the terminal, without showing it, or from the first line
of standard input, and prints the hash that replaces it in the configuration:

	key sha256:<hex>

Weir compares keys by this hash, so the key itself need not be configured.
Choose keys that cannot be guessed, such as those of 'openssl rand -hex 32'.`,
		CobraFunc: hashKeyCommand,
	}, {
		Name:  "init",
		Usage: "[<file>]",
		Short: "Writes a Caddyfile to keep",
		Long: `
Writes the Caddyfile that 'run' serves where there is none, to <file>, else to Caddyfile in
this directory. It overwrites nothing.`,
		CobraFunc: func(cmd *cobra.Command) {
			initCommand(cmd)
			changeCommands(one.Root())
		},
	}} {
		build := c.CobraFunc
		c.CobraFunc = func(cmd *cobra.Command) {
			build(cmd)
			cmd.Use = strings.TrimSpace(cmd.Use) // Caddy puts a blank before the usage
			cmd.GroupID = groupOf(c.Name)
			completeValues(cmd)
			makeErrorsHarmless(cmd)
			cmd.SetOut(onScreen(os.Stdout))
			one = cmd
		}
		caddycmd.RegisterCommand(c)
	}
}

// one is a command of ours. Caddy shows its root command to nobody, but a command that it
// has added knows the root.
var one *cobra.Command

const filterHelp = `

A filter is made of terms, <field><operator><value>, and all of them must hold,
or all of those on one side of an "or"; parentheses join:

	weir query model=gpt-4o-mini 'cost>0.01' property.env=prod since=1h
	weir query 'status>=500' or cost=null
	weir query since=1d '(model=a or model=b) cost>1'

Operators are = != > >= < <= and ~ !~ (contains, contains not; letter case does
not matter). Quote them for the shell, and quote values with blanks in "".
Fields are those of request_response_rmt in the API, property.<name> and
score.<name>, and in short: id, time, ended, user, session, country, in, out,
tokens, ttft, body, response, error, feedback. since= and until= take a time, a date
(in UTC) or an age such as 90m or 7d. "all" matches everything, and a filter of
the API may stand as JSON.`

// terminalWidth is 0 unless w is a terminal.
func terminalWidth(w any) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
