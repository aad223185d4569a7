package reconcile

import (
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// NewFileBill is an empty bill of providers that have their own names of models.
func NewFileBill(providers ...string) *Bill {
	return &Bill{
		Providers: providers, States: [kinds]bool{Input: true, CacheRead: true, CacheWrite: true, CacheWrite1h: true, Output: true},
		OwnNames: true, WithoutTokens: make(map[string]bool), fileOf: make(map[lineKey]string),
	}
}

// bedrockUsage finds the model and the kind of tokens in a usage type such as
// USE1-Claude4.6Sonnet-cache-read-input-token-count-cross-region-global-batch.
// https://docs.aws.amazon.com/bedrock/latest/userguide/cost-mgmt-understanding-cur-data.html
var bedrockUsage = regexp.MustCompile(`(?i)^[A-Z0-9]+-(.+?)-((?:text-)?input-tokens|output-tokens|cache-(?:read|write)[a-z0-9-]*?token(?:s|-count))(-.*)?$`)

// marketplaceUsage finds the kind in a usage type of models that AWS Marketplace sells, such as
// USW2-MP:USW2_cache_write_tokens_1h_standard-Units or USE1-MP:USE1_InputTokenCount-Units.
var marketplaceUsage = regexp.MustCompile(`(?i)^[A-Z0-9]+-MP:[A-Z0-9]+_(.*token.*)-Units$`)

// awsKey has the columns that say what a line item is for. They are the same in each version of a
// month's report. identity_line_item_id is not, and amounts grow until the month is closed.
// https://docs.aws.amazon.com/cur/latest/userguide/table-dictionary-cur2-identity.html
var awsKey = []string{
	"bill_payer_account_id", "bill_billing_period_start_date", "identity_time_interval",
	"line_item_usage_account_id", "line_item_resource_id", "line_item_iam_principal", "line_item_product_code",
	"line_item_usage_type", "line_item_operation", "line_item_usage_start_date", "line_item_usage_end_date",
	"line_item_line_item_type", "line_item_line_item_description", "line_item_unblended_rate",
	"product", "resource_tags", "tags",
}

// AddAWS adds the lines for Bedrock of a Cost and Usage Report 2.0, as CSV.
func (b *Bill) AddAWS(r io.Reader) error {
	return readRows(r, func(line row) error {
		usageType, product := line("line_item_usage_type"), line("product_product_name")
		if product == "" {
			product = gjson.Get(line("product"), "product_name").Str
		}
		name, edition := strings.CutSuffix(product, " (Amazon Bedrock Edition)")
		if usageType == "" && line("line_item_line_item_type") == "" {
			return fmt.Errorf("the report has no line_item_usage_type: export CUR 2.0 with the columns of line items")
		}
		if !edition && line("line_item_product_code") != "AmazonBedrock" {
			return nil
		}
		if other := b.otherFile(line, awsKey); other != "" {
			return fmt.Errorf("the usage %s of %s is in %s, too: give the files of one version of the report", usageType, line("line_item_usage_start_date"), other)
		}
		day, err := timeDay(line("line_item_usage_start_date"))
		if err != nil {
			return fmt.Errorf("line_item_usage_start_date: %w", err)
		}
		if err := dollars(line("line_item_currency_code")); err != nil {
			return err
		}
		amount, err := ParseAmount(line("line_item_unblended_cost"), 0)
		if err != nil {
			return fmt.Errorf("line_item_unblended_cost: %w", err)
		}
		description := line("line_item_line_item_description")
		if kind := line("line_item_line_item_type"); kind != "Usage" {
			b.leaveOut(day, kind+": "+description, amount)
			return nil
		}
		// The amount counts thousands or millions of tokens, as the unit says, else the description.
		quantity, unit := line("line_item_usage_amount"), line("pricing_unit")+" "+description
		if found := bedrockUsage.FindStringSubmatch(usageType); found != nil {
			b.addLine(day, found[1], found[2]+found[3], description, amount, quantity, unit)
		} else if found := marketplaceUsage.FindStringSubmatch(usageType); found != nil && edition {
			b.addLine(day, name, found[1], description, amount, quantity, unit)
		} else {
			b.leaveOut(day, usageType, amount)
		}
		return nil
	})
}

// addLine adds what was used of a model. kind has the words that say what it was.
func (b *Bill) addLine(day Day, name, kind, description string, amount Amount, quantity, unit string) {
	kind = strings.ToLower(kind)
	tier := ""
	for _, t := range []string{plugins.BatchTier, "flex", "priority"} {
		if strings.Contains(kind, t) {
			tier = t
		}
	}
	b.Costs = append(b.Costs, Cost{Day: day, Model: name, Tier: tier, Description: description, Amount: amount})
	tokens, ok := tokensIn(quantity, unit)
	if !ok {
		b.WithoutTokens[name] = true
		return
	}
	u := Usage{Day: day, Model: name, Tier: tier}
	switch {
	case strings.Contains(kind, "write") && (strings.Contains(kind, "1h") || strings.Contains(kind, "hour")):
		u.Tokens[CacheWrite1h] = tokens
	case strings.Contains(kind, "write"):
		u.Tokens[CacheWrite] = tokens
	case strings.Contains(kind, "cach"):
		u.Tokens[CacheRead] = tokens
	case strings.Contains(kind, "output"):
		u.Tokens[Output] = tokens
	default:
		u.Tokens[Input] = tokens
	}
	b.Usage = append(b.Usage, u)
}

// tokensIn is a quantity in tokens. ok is false if the unit is not known.
func tokensIn(quantity, unit string) (tokens int64, ok bool) {
	unit = strings.ToLower(unit)
	factor := int64(0)
	switch {
	case strings.Contains(unit, "1k token"), strings.Contains(unit, "1k input"), strings.Contains(unit, "1k output"), strings.Contains(unit, "thousand"):
		factor = 1000
	case strings.Contains(unit, "1m token"), strings.Contains(unit, "million"):
		factor = 1_000_000
	case unit == "tokens":
		factor = 1
	}
	if _, err := ParseAmount(quantity, 0); err != nil || factor == 0 {
		return 0, false
	}
	n, _ := new(big.Rat).SetString(quantity) // ParseAmount has read it
	n.Mul(n, new(big.Rat).SetInt64(factor))
	integer, ok := new(big.Int).SetString(n.FloatString(0), 10)
	return integer.Int64(), ok && integer.IsInt64()
}

// leaveOut adds an amount to what cannot be compared. Amounts of a day with the same description
// are one.
func (b *Bill) leaveOut(day Day, description string, amount Amount) {
	if amount.Nanodollars == 0 {
		return
	}
	for i := range b.Incomparable {
		if item := &b.Incomparable[i]; item.Day != nil && *item.Day == day && item.Description == description {
			item.Amount = item.Amount.Plus(plugins.KnownCost(amount.Nanodollars))
			return
		}
	}
	b.Incomparable = append(b.Incomparable, Item{&day, description, plugins.KnownCost(amount.Nanodollars)})
}

// timeDay is the day of a time as exports write it.
func timeDay(text string) (Day, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999 MST", "2006-01-02 15:04:05.999999999", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return DayOf(t), nil
		}
	}
	return 0, fmt.Errorf("%q is not a time", text)
}
