package llmcommand

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

// place is where people set a field that the API takes: a text of the page's screen, and a command with
// a flag, an argument or neither. why says why page or command line have none.
type place struct{ page, command, why string }

const (
	scriptAlone = "programs send the id of what they have made"
	rateLimits  = "a budget with the quantity requests or tokens is the same, for any calls"
	spendAlerts = "a stage of a budget, or a rule of budget_percent, is the same, and tells channels"
	oneValue    = "the API takes one value"
	ownPatterns = "own patterns are long: the API and the page take them"
)

// places are all fields of the objects of the control API, by the names of schemas in openapi.json.
var places = map[string]map[string]place{
	"BudgetSettings": {
		"name": {`name="name"`, "budget set <budget>", ""}, "limit": {`name="limit"`, "budget set <limit>", ""}, "quantity": {`"What counts"`, "budget set --quantity", ""},
		"window": {`"Window"`, "budget set --window", ""}, "timezone": {`name="timezone"`, "budget set --timezone", ""}, "since": {`name="since"`, "budget set --since", ""},
		"filter": {"<${FilterText}", "budget set --for", ""}, "per": {"<${Per}", "budget set --per", ""}, "trust": {`name="trust"`, "budget set --trust", ""},
		"wait": {`name="wait"`, "budget set --wait", ""}, "cut": {`name="cut"`, "budget set --cut", ""}, "stages": {"<${Stages}", "budget set --alert", ""},
		"on_unpriced": {`name="on_unpriced"`, "budget set --on-unpriced", ""}, "observe": {`name="observe"`, "budget set --observe", ""},
	},
	"BudgetStage": {"at": {`name="at"`, "budget set --alert", ""}, "use": {`name="use"`, "budget set --alert", ""}},
	"BudgetTry": {
		"budget": {"Try it on past calls", "budget try --quantity", ""}, "from": {`name="days"`, "budget try --since", ""}, "limit": {"", "budget try --calls", "the page shows sums"},
		"to": {"", "", "people try a budget on the calls until now"},
	},
	"Settings": {
		"name": {`field("name"`, "key create <name>", ""}, "owner": {`field("owner"`, "key create --owner", ""}, "owner_id": {"", "key create --owner-id", scriptAlone},
		"project": {`field("project"`, "key create --project", ""}, "user": {`field("user"`, "key create --user", ""}, "scopes": {`name="scope"`, "key create --scopes", ""},
		"models": {`field("models"`, "key create --models", ""}, "providers": {`field("providers"`, "key create --providers", ""}, "trust": {`name="trust"`, "key create --trust", ""},
		"mask": {`field("mask"`, "key create --mask", ""}, "properties": {`name="properties"`, "key create --properties", ""}, "expires_at": {`field("expires_at"`, "key create --expires", ""},
		"disabled": {`"Disable"`, "key disable <id>", ""},
	},
	"MaskRule": {
		"kinds": {`field("mask"`, "key create --mask", ""}, "as": {`field("mask"`, "", ownPatterns}, "on_match": {`field("mask"`, "", ownPatterns},
		"patterns": {`field("mask"`, "", ownPatterns}, "words": {`field("mask"`, "", ownPatterns},
	},
	"OwnKeySettings": {
		"name": {`name="name"`, "key create --mine", ""}, "project": {`name="project"`, "key create --project", ""}, "scopes": {`name="scope"`, "key create --scopes", ""},
		"models": {`name="models"`, "key create --models", ""}, "providers": {"", "key create --providers", "the providers of one's own key hold"}, "expires_at": {`name="days"`, "key create --expires", ""},
	},
	"Rotation": {"overlap_seconds": {"overlap_seconds", "key rotate --overlap", ""}},
	"AlertRuleSettings": {
		"name": {`name="name"`, "alert set <rule>", ""}, "total": {`"What is compared"`, "alert set <condition>", ""}, "operator": {`name="operator"`, "alert set <condition>", ""},
		"threshold": {`name="threshold"`, "alert set <condition>", ""}, "over": {"Over <", "alert set --over", ""}, "than": {"a week before", "alert set --than-last-week", ""},
		"filter": {"<${FilterText}", "alert set --for", ""}, "per": {"<${Per}", "alert set --per", ""}, "to": {`name="to"`, "alert set --to", ""},
	},
	"Named":                    {"name": {`"Name"`, "project rename <name>", ""}},
	"SpendLimitSettings":       {"threshold_amount": {`name="amount"`, "project limit <dollars>", ""}, "currency": {"", "", oneValue}, "interval": {"", "", oneValue}},
	"ModelPermissionsSettings": {"mode": {`name="mode"`, "project models <allow|deny|all>", ""}, "model_ids": {`name="ids"`, "project models [<model>...]", ""}},
	"KeyPermissionsSettings": {
		"creators": {`name="creator"`, "project keys <who>...", ""}, "max_keys": {`name="max"`, "project keys --max", ""}, "max_lifetime_seconds": {`name="days"`, "project keys --lifetime", ""},
	},
	"RateLimitSettings": {"max_requests_per_1_minute": {why: rateLimits}, "max_tokens_per_1_minute": {why: rateLimits}, "max_requests_per_1_day": {why: rateLimits}},
	"SpendAlertSettings": {
		"threshold_amount": {why: spendAlerts}, "currency": {why: spendAlerts}, "interval": {why: spendAlerts}, "notification_channel": {why: spendAlerts},
	},
	"UserChange": {"role": {`"Role of "`, "member role <role>", ""}},
	"InviteSettings": {
		"email": {`name="email"`, "member invite <email>", ""}, "role": {`name="role"`, "member invite --role", ""}, "projects": {"", "", "people are added to a project on its page, and by weir member add"},
	},
	"ProjectUserSettings": {"user_id": {`name="user"`, "", "the command takes the email"}, "email": {"", "member add <member>", "the page sends the id"}, "role": {`name="role"`, "member add --role", ""}},
	"ProjectUserChange":   {"role": {`"Role of "`, "member add --role", ""}},
	"HoldSettings":        {"filter": {"filter: chosen", "hold place <filter>...", ""}, "reason": {`name="reason"`, "hold place --reason", ""}},
	"ErasureSettings":     {"filter": {"filter: chosen", "erase [<filter>...]", ""}, "what": {`name="what"`, "erase --content", ""}, "dry_run": {"dry_run", "erase --yes", ""}},
	"RepricingSettings":   {"filter": {"", "reprice <filter>...", "an operator's repair"}, "dry_run": {"", "reprice --yes", "an operator's repair"}},
	"ReconciliationSettings": {
		"bill": {"bill", "reconcile", ""}, "since": {"since", "reconcile --since", ""}, "until": {"until", "reconcile --until", ""},
	},
	"AdminKeySettings":   {"name": {why: scriptAlone}, "expires_in_seconds": {why: scriptAlone}},
	"AccountSettings":    {"name": {why: scriptAlone}, "create_service_account_only": {why: scriptAlone}, "expires_in_seconds": {why: scriptAlone}},
	"AccountChange":      {"name": {why: scriptAlone}, "role": {why: scriptAlone}},
	"AccountKeySettings": {"name": {why: scriptAlone}, "scopes": {why: scriptAlone}, "expires_in_seconds": {why: scriptAlone}},
	"ProjectKeyChange":   {"scopes": {why: scriptAlone}, "expires_in_seconds": {why: scriptAlone}},
}

// screens have the forms of the page, by the schema that each sends.
var screens = map[string]string{
	"BudgetSettings": "budgets", "BudgetStage": "budgets", "BudgetTry": "budgets", "Settings": "keys", "MaskRule": "keys", "Rotation": "keys", "OwnKeySettings": "mine", "AlertRuleSettings": "alerts",
	"HoldSettings": "privacy", "ErasureSettings": "privacy", "ReconciliationSettings": "bill",
}

// Whatever the API can change, people can change in the page and by a command, or a reason says why not.
func TestTheAPIThePageAndTheCommandsSetTheSame(t *testing.T) {
	description, err := os.ReadFile("../llmcontrol/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]*cobra.Command{}
	for name, build := range map[string]func(*cobra.Command){
		"budget": budgetCommand, "key": keyCommand, "alert": alertCommand, "project": projectCommand, "member": memberCommand, "hold": holdCommand, "erase": eraseCommand, "reprice": repriceCommand, "reconcile": reconcileCommand,
	} {
		commands[name] = &cobra.Command{Use: name}
		build(commands[name])
	}
	gjson.GetBytes(description, "components.schemas").ForEach(func(schema, s gjson.Result) bool {
		if s.Get("additionalProperties").Type != gjson.False { // no object that the API takes
			return true
		}
		screen := screens[schema.Str]
		if screen == "" {
			screen = "control"
		}
		page, err := os.ReadFile(filepath.Join("../llmui/web/screens", screen+".js"))
		if err != nil {
			t.Fatal(err)
		}
		for field := range s.Get("properties").Map() {
			p, ok := places[schema.Str][field]
			switch {
			case !ok:
				t.Errorf("%s has a field %s: give it to the page's form and to the command, and add both to places", schema, field)
			case (p.page == "" || p.command == "") && p.why == "":
				t.Errorf("%s.%s: nothing says why the page or the command lacks it", schema, field)
			case !strings.Contains(string(page), p.page):
				t.Errorf("%s.%s: the screen %s has no %s", schema, field, screen, p.page)
			case p.command != "" && !takes(commands, strings.Fields(p.command)):
				t.Errorf("%s.%s: there is no command %s", schema, field, p.command)
			}
		}
		return true
	})
}

// takes reports whether there is a command of some words, the last of which may be one of its flags or
// arguments.
func takes(commands map[string]*cobra.Command, words []string) bool {
	cmd := commands[words[0]]
	for _, word := range words[1:] {
		flag, isFlag := strings.CutPrefix(word, "--")
		if isFlag {
			return cmd.Flags().Lookup(flag) != nil
		}
		if strings.ContainsAny(word, "<[") {
			return slices.Contains(strings.Fields(cmd.Use), word) || cmd.Parent() == nil
		}
		at := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
		if at < 0 {
			return false
		}
		cmd = cmd.Commands()[at]
	}
	return true
}
