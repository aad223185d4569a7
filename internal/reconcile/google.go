package reconcile

import (
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// skuWords are the words of a SKU's description that are not of the model's name.
var skuWords = []string{
	"ga", "input", "output", "thinking", "on", "off", "predictions", "prediction", "online", "regional", "caching", "cached", "cache", "hit", "write", "read",
	"batch", "flex", "priority", "tokens", "token", "count", "generate", "content", "generative", "context", "long", "short", "vertex", "api",
}

// periodPattern finds for how long a SKU keeps its cache, which is no word of the model's name.
var periodPattern = regexp.MustCompile(`(?i)\b(5 ?m(in(ute)?s?)?|1 ?h(ours?)?)\b`)

// modalities are words of a description that may be of the model's name, too.
var modalities = []string{"text", "image", "audio", "video"}

// googleKey has the columns that tell a line from all others. A line of the table never changes: what
// Google bills later is a line of its own, with another export_time.
// https://docs.cloud.google.com/billing/docs/how-to/export-data-bigquery-tables/standard-usage
var googleKey = []string{
	"billing_account_id", "service", "service.id", "service.description", "sku", "sku.id", "sku.description", "usage_start_time", "usage_start_date",
	"usage_end_time", "project", "project.id", "project.name", "labels", "system_labels", "tags", "location", "location.location", "location.region",
	"resource", "resource.name", "export_time", "cost", "unrounded_cost", "currency", "currency_conversion_rate", "usage", "usage.amount", "usage_amount",
	"credits", "invoice", "invoice.month", "cost_type", "adjustment_info", "transaction_type", "seller_name", "subscription", "price",
}

// googleColumns are those without which an export cannot be compared.
var googleColumns = [][]string{
	{"sku.description", "sku_description"}, {"usage_start_time", "usage_start_date"}, {"cost", "unrounded_cost"}, {"currency"}, {"usage.amount", "usage_amount"},
}

// AddGoogle adds the lines for models of a Cloud Billing export, as CSV or JSON.
// https://docs.cloud.google.com/billing/docs/how-to/export-data-bigquery-tables/standard-usage
func (b *Bill) AddGoogle(r io.Reader) error {
	return readRows(r, googleColumns, func(line row) error {
		sku := line("sku.description", "sku_description")
		if lower := strings.ToLower(sku); !strings.Contains(lower, "gemini") && !strings.Contains(lower, "claude") {
			return nil
		}
		if other := b.exports.otherFile(line, googleKey); other != "" {
			return fmt.Errorf("the usage %s of %s is in %s, too: give each line once. Put lines that are rightly the same into one file", sku, line("usage_start_time", "usage_start_date"), other)
		}
		day, err := timeDay(line("usage_start_time", "usage_start_date"))
		if err != nil {
			return fmt.Errorf("usage_start_time: %w", err)
		}
		rate, err := conversionRate(line("currency"), line("currency_conversion_rate"))
		if err != nil {
			return err
		}
		amount, err := parseConverted(line("cost", "unrounded_cost"), rate)
		if err != nil {
			return fmt.Errorf("cost: %w", err)
		}
		for _, credit := range gjson.Parse(line("credits")).Array() {
			reduction, err := parseConverted(credit.Get("amount").String(), rate)
			if err != nil {
				return fmt.Errorf("credits: %w", err)
			}
			if err := b.addIncomparable(day, "credit: "+credit.Get("name").Str, reduction); err != nil {
				return err
			}
		}
		lower := strings.ToLower(sku)
		kind := line("cost_type")
		if kind != "" && kind != "regular" || strings.Contains(lower, "storage") || !strings.Contains(lower, "put") && !strings.Contains(lower, "cach") {
			return b.addIncomparable(day, sku, amount)
		}
		return b.addLine(day, sku, lower, amount, line("usage.amount", "usage_amount"), "tokens")
	})
}

// conversionRate returns how much of the currency of a line a US dollar is.
func conversionRate(currency, rate string) (*big.Rat, error) {
	notDollars := dollars(currency)
	if notDollars == nil {
		return big.NewRat(1, 1), nil
	}
	if rate == "" {
		return nil, fmt.Errorf("%w: export the column currency_conversion_rate, too", notDollars)
	}
	n, ok := parseDecimal(rate)
	if !ok || n.Sign() <= 0 {
		return nil, fmt.Errorf("currency_conversion_rate: %q is no rate", rate)
	}
	return n, nil
}

// parseConverted reads an amount in another currency. rate is how much of it a US dollar is worth.
func parseConverted(text string, rate *big.Rat) (Amount, error) {
	amount, err := ParseAmount(text, 0)
	if err != nil || rate.Cmp(big.NewRat(1, 1)) == 0 {
		return amount, err
	}
	converted := new(big.Rat).SetInt64(int64(amount.Nanodollars))
	n, ok := new(big.Int).SetString(converted.Quo(converted, rate).FloatString(0), 10)
	rounding, _ := new(big.Rat).Quo(new(big.Rat).SetInt64(int64(amount.Rounding)), rate).Float64()
	if !ok || !n.IsInt64() || rounding > 1e18 {
		return Amount{}, fmt.Errorf("the amount %q is out of range in US dollars", text)
	}
	return Amount{plugins.Nanodollars(n.Int64()), plugins.Nanodollars(rounding) + 1}, nil
}
