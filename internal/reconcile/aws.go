package reconcile

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

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

// awsColumns are those without which a report cannot be compared.
var awsColumns = [][]string{
	{"line_item_usage_type"}, {"line_item_line_item_type"}, {"line_item_product_code"}, {"line_item_usage_start_date"}, {"line_item_usage_amount"},
	{"line_item_unblended_cost"}, {"line_item_currency_code"}, {"pricing_unit", "line_item_line_item_description"},
}

// AddAWS adds the lines for Bedrock of a Cost and Usage Report 2.0, as CSV.
func (b *Bill) AddAWS(r io.Reader) error {
	return readRows(r, awsColumns, func(line row) error {
		usageType, product := line("line_item_usage_type"), line("product_product_name")
		if product == "" {
			product = gjson.Get(line("product"), "product_name").Str
		}
		name, edition := strings.CutSuffix(product, " (Amazon Bedrock Edition)")
		if !edition && line("line_item_product_code") != "AmazonBedrock" {
			return nil
		}
		if other := b.exports.otherFile(line, awsKey); other != "" {
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
			return b.addIncomparable(day, kind+": "+description, amount)
		}
		// The amount counts thousands or millions of tokens, as the unit says, else the description.
		quantity, unit := line("line_item_usage_amount"), line("pricing_unit")+" "+description
		if found := bedrockUsage.FindStringSubmatch(usageType); found != nil {
			return b.addLine(day, found[1], found[2]+found[3], amount, quantity, unit)
		} else if found := marketplaceUsage.FindStringSubmatch(usageType); found != nil && edition {
			return b.addLine(day, name, found[1], amount, quantity, unit)
		}
		return b.addIncomparable(day, usageType, amount)
	})
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
