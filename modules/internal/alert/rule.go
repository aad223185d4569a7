package alert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// Rule says when an alert fires, and whom it tells.
type Rule struct {
	// Name is unique in the organisation.
	Name string `json:"name"`

	// Total is what is compared: a total as the `sort` of /v1/metrics/query names it, such as
	// `cost`, `errors` or `latency.p95`; or `budget_percent` and `budget_forecast_percent` (of
	// the limits of budgets that are spent, or will be at the end of the window),
	// `key_days_left` (until an API key ends), `lost_records`, or `bill_differences` and
	// `bill_difference_cost` (between bills of providers and the records, in number and in
	// dollars). Costs are in US dollars, times in milliseconds.
	Total string `json:"total"`

	// Operator is `>`, `>=`, `<` or `<=`.
	Operator string `json:"operator"`

	// Threshold is what the total is compared with.
	Threshold float64 `json:"threshold"`

	// Over is the length of the window, which ends now: 1 minute to 31 days; for percentiles, at
	// most 1 hour; for bills, whole days, of which the last is the one before yesterday. Totals of
	// budgets and keys have none.
	Over caddy.Duration `json:"over,omitempty"`

	// Than is `last_week` to compare how many times the total is that of the same window a week
	// ago. Default: the total itself is compared.
	Than string `json:"than,omitempty"`

	// Filter says which records count, in the filter language of the query API. Default: all.
	Filter json.RawMessage `json:"filter,omitempty"`

	// Per is an attribute as of budgets: each of its values has an alert of its own: `user`,
	// `session`, `project`, `key`, `provider`, `model`, `tree` or `property.<name>`. Default: all
	// records are compared together.
	Per string `json:"per,omitempty"`

	// To are the names of channels.
	To []string `json:"to"`

	filter storage.Filter
	by     []storage.Dimension
}

// lastWeek is the value of Rule.Than.
const lastWeek = "last_week"

// The totals that are not of records.
const (
	BudgetPercent         = "budget_percent"
	BudgetForecastPercent = "budget_forecast_percent"
	KeyDaysLeft           = "key_days_left"
	LostRecords           = "lost_records"
	BillDifferences       = "bill_differences"
	BillDifferenceCost    = "bill_difference_cost"
)

// subjects are the attributes that the totals which are not of records have.
var subjects = map[string]string{
	BudgetPercent: "budget", BudgetForecastPercent: "budget", KeyDaysLeft: "key", LostRecords: "reason",
	BillDifferences: "bill", BillDifferenceCost: "bill",
}

// present are the totals that are what holds now, and have no window.
var present = map[string]bool{BudgetPercent: true, BudgetForecastPercent: true, KeyDaysLeft: true}

// dimensions are the dimensions of records by the attributes of rules.
var dimensions = map[string]storage.DimensionName{
	"user": storage.ByUser, "session": storage.BySession, "project": "project", "key": "key_id",
	"provider": "provider", "model": "model", "tree": storage.ByTree,
}

// Bounds of windows.
const (
	minWindow        = time.Minute
	maxWindow        = 31 * 24 * time.Hour
	maxQuantileRange = time.Hour
)

// maxName bounds names of rules and channels, in bytes.
const maxName = 100

// Operators are what Rule.Operator may be.
var Operators = []string{">", ">=", "<", "<="}

// Provision checks the rule. channels are the names of the channels that there are.
func (r *Rule) Provision(channels []string) error {
	if err := checkName(r.Name); err != nil {
		return fmt.Errorf("an alert %w", err)
	}
	if err := r.provision(channels); err != nil {
		return fmt.Errorf("alert %s: %w", r.Name, err)
	}
	return nil
}

func (r *Rule) provision(channels []string) (err error) {
	ofRecords := subjects[r.Total] == ""
	key := storage.TotalKey(r.Total)
	if keys := slices.Concat(storage.TotalKeys(), keysOf(subjects)); !slices.Contains(keys, key) {
		return fmt.Errorf("when: %s", storage.Unknown("total", r.Total, keys))
	}
	if !slices.Contains(Operators, r.Operator) {
		return fmt.Errorf("when: the operator is one of %s, not %q", strings.Join(Operators, " "), r.Operator)
	}
	if math.IsNaN(r.Threshold) || math.IsInf(r.Threshold, 0) {
		return fmt.Errorf("when: %v is no number to compare with", r.Threshold)
	}
	over := time.Duration(r.Over)
	switch {
	case present[r.Total] && over != 0:
		return fmt.Errorf("%s is what holds now: leave out `over`", r.Total)
	case present[r.Total]:
	case over < minWindow || over > maxWindow || over%time.Minute != 0:
		return fmt.Errorf("over takes whole minutes, from 1m to 31d, not %s", over)
	case subjects[r.Total] == "bill" && over%(24*time.Hour) != 0:
		return fmt.Errorf("%s is over whole days, as in `over 7d`, not %s: bills are of days", r.Total, over)
	case ofRecords && !key.IsSum() && over > maxQuantileRange:
		return fmt.Errorf("a percentile is over 1h at most, not %s", over)
	}
	switch {
	case r.Than != "" && r.Than != lastWeek:
		return fmt.Errorf("than takes %s, not %q", lastWeek, r.Than)
	case !ofRecords && (r.Than != "" || len(r.Filter) > 0 || r.Per != ""):
		return fmt.Errorf("%s is not of records: leave out `than`, `for` and `per`", r.Total)
	}
	if r.filter, err = storage.ParseFilter(r.Filter, storage.RequestResponse); err != nil {
		return err
	}
	property, ofProperty := strings.CutPrefix(r.Per, "property.")
	switch {
	case r.Per == "":
	case ofProperty && property != "":
		r.by = []storage.Dimension{{Name: storage.ByProperty, Property: property}}
	case dimensions[r.Per] == "":
		return fmt.Errorf("per takes %s or property.<name>, not %q", strings.Join(slices.Sorted(maps.Keys(dimensions)), ", "), r.Per)
	case r.Per == "session" && key.IsSum(): // columns have sessions by all three; series adds up their names
		r.by = []storage.Dimension{{Name: storage.BySession}, {Name: storage.BySessionName}, {Name: storage.BySessionTag}}
	default:
		r.by = []storage.Dimension{{Name: dimensions[r.Per]}}
	}
	if len(r.To) == 0 {
		return fmt.Errorf("to names no channel%s", have(channels))
	}
	for _, name := range r.To {
		if !slices.Contains(channels, name) {
			return fmt.Errorf("there is no channel %q in the configuration%s", name, have(channels))
		}
	}
	return nil
}

func have(channels []string) string {
	if len(channels) == 0 {
		return "; it has none: add one, as in `channel ops slack {env.SLACK_URL}`"
	}
	return "; it has " + strings.Join(channels, ", ")
}

func keysOf(m map[string]string) (keys []storage.TotalKey) {
	for key := range m {
		keys = append(keys, storage.TotalKey(key))
	}
	return keys
}

func checkName(name string) error {
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return fmt.Errorf("takes a name of 1 to %d bytes, not %q", maxName, name)
	}
	return nil
}

// isTrue compares a value.
func (r *Rule) isTrue(value float64) bool {
	switch r.Operator {
	case ">":
		return value > r.Threshold
	case ">=":
		return value >= r.Threshold
	case "<":
		return value < r.Threshold
	}
	return value <= r.Threshold
}

// maxSubjects bounds the subjects of a rule that fire at the same time, and othersSubject stands for
// all further ones.
const (
	maxSubjects   = 100
	othersSubject = "(others)"
)

// exceeding returns the subjects of which the condition is true, with their values: those that fire
// already, and then those that are farthest from the threshold, up to maxSubjects. othersSubject
// stands for the rest, with their number: whoever names users or sessions could otherwise have any
// number of messages sent.
func (r *Rule) exceeding(values map[string]float64, firing map[string]*control.Firing) map[string]float64 {
	exceeding := make(map[string]float64)
	var fresh []string
	for subject, value := range values {
		switch {
		case !r.isTrue(value):
		case firing[subject] != nil:
			exceeding[subject] = value
		default:
			fresh = append(fresh, subject)
		}
	}
	distance := func(subject string) float64 { return math.Abs(values[subject] - r.Threshold) }
	slices.SortFunc(fresh, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(b), distance(a)), cmp.Compare(a, b))
	})
	fit := min(len(fresh), max(maxSubjects-len(exceeding), 0))
	for _, subject := range fresh[:fit] {
		exceeding[subject] = values[subject]
	}
	if rest := len(fresh) - fit; rest > 0 {
		exceeding[othersSubject] = float64(rest)
	}
	return exceeding
}

// subject is the attribute of the subjects of the rule, "" if it has none.
func (r *Rule) subject() string { return cmp.Or(subjects[r.Total], r.Per) }

// Condition is the condition in words.
func (r *Rule) Condition() string {
	words := []string{r.Total, r.Operator, strconv.FormatFloat(r.Threshold, 'f', -1, 64)}
	if r.Than != "" {
		words = append(words, "times that of last week")
	}
	if r.Over != 0 {
		words = append(words, "over", r.Window())
	}
	return strings.Join(words, " ")
}

// Window is Over as people write it, such as 1h or 7d; "" if there is none.
func (r *Rule) Window() string {
	d := time.Duration(r.Over)
	if d == 0 {
		return ""
	}
	if days := d / (24 * time.Hour); days > 0 && d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(days)) + "d"
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if rest, ok := strings.CutSuffix(text, zero); ok {
			text = rest + zero[:1]
		}
	}
	return text
}

// identity is the same for rules that read and compare the same.
func (r *Rule) identity() string {
	return strings.Join([]string{r.Name, r.Condition(), string(r.Filter), r.Per}, "\n")
}
