package llmcommand

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// formatFOCUS is CSV with the columns of the FinOps Open Cost and Usage Specification.
const formatFOCUS = "focus"

// focusColumns are those that FOCUS 1.0 to 1.4 ask of a usage charge, and the call's id. A column
// without a value is null. 1.4 has no ProviderName and no PublisherName any more, which readers of
// earlier versions need (https://focus.finops.org/focus-specification/v1-4/).
var focusColumns = []struct {
	name  string
	value func(*charge) string
}{
	{"BilledCost", cost},
	{"EffectiveCost", cost},
	{"ContractedCost", cost},
	{"ListCost", cost},
	{"BillingCurrency", always("USD")},
	{"BillingAccountId", accountOf},
	{"BillingAccountName", accountOf},
	{"BillingAccountType", always("Provider account")},
	{"SubAccountId", func(c *charge) string { return c.text("project") }},
	{"SubAccountName", func(c *charge) string { return c.text("project") }},
	{"SubAccountType", func(c *charge) string { return ifAny(c.text("project"), "Project") }},
	{"BillingPeriodStart", func(c *charge) string { return focusTime(c.month()) }},
	{"BillingPeriodEnd", func(c *charge) string { return focusTime(c.month().AddDate(0, 1, 0)) }},
	{"ChargePeriodStart", func(c *charge) string { return focusTime(c.at.Truncate(time.Hour)) }},
	{"ChargePeriodEnd", func(c *charge) string { return focusTime(c.at.Truncate(time.Hour).Add(time.Hour)) }},
	{"ChargeCategory", always("Usage")},
	{"ChargeClass", always("")},
	{"ChargeDescription", func(c *charge) string { return "One call of " + cmp.Or(c.text("model"), "a model") }},
	{"ChargeFrequency", always("Usage-Based")},
	{"CommitmentDiscountCategory", always("")},
	{"CommitmentDiscountId", always("")},
	{"CommitmentDiscountName", always("")},
	{"CommitmentDiscountStatus", always("")},
	{"CommitmentDiscountType", always("")},
	{"ConsumedQuantity", quantity},
	{"ConsumedUnit", tokens},
	{"PricingQuantity", quantity},
	{"PricingUnit", tokens},
	{"PricingCategory", always("Standard")},
	{"ContractedUnitPrice", always("")}, // input and output have prices of their own
	{"ListUnitPrice", always("")},
	{"InvoiceId", always("")}, // a provider's invoice comes later
	{"InvoiceDetailId", always("")},
	{"InvoiceIssuerName", provider},
	{"ProviderName", provider},
	{"PublisherName", provider},
	{"ServiceProviderName", provider},
	{"HostProviderName", provider},
	{"ServiceCategory", always("AI and Machine Learning")},
	{"ServiceSubcategory", always("Generative AI")},
	{"ServiceName", func(c *charge) string { return provider(c) + " models" }},
	{"RegionId", func(c *charge) string { return c.text("inference_geo") }},
	{"RegionName", func(c *charge) string { return c.text("inference_geo") }},
	{"AvailabilityZone", always("")},
	{"ResourceId", func(c *charge) string { return c.text("model") }},
	{"ResourceName", func(c *charge) string { return c.text("model") }},
	{"ResourceType", always("Model")},
	{"SkuId", func(c *charge) string { return c.text("model") }},
	{"SkuMeter", tokens},
	{"SkuPriceDetails", (*charge).priceDetails},
	{"SkuPriceId", func(c *charge) string { return strings.Trim(c.text("model")+"@"+c.text("price_version"), "@") }},
	{"Tags", (*charge).tags},
	{"x_WeirRequestId", func(c *charge) string { return c.text("request_id") }},
}

// focusTags are the fields that become tags. Those of a provider have a prefix, so that the
// properties that callers set cannot be taken for them.
var focusTags = []struct{ tag, field string }{
	{"weir/organization", "organization_id"}, {"weir/user", "request_user_id"}, {"weir/session", "session_id"}, {"weir/project", "project"},
	{"weir/key", "key_id"}, {"weir/model", "request_model"},
}

// charge is a call as a charge.
type charge struct {
	fields map[string]gjson.Result // of its record
	at     time.Time
}

// text is a field without quotes, "" for null. Numbers keep all their digits.
func (c *charge) text(field string) string {
	value := c.fields[field]
	if value.Type == gjson.Number {
		return value.Raw
	}
	return value.Str
}

func (c *charge) month() time.Time {
	return time.Date(c.at.Year(), c.at.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func (c *charge) tags() string {
	tags := make(map[string]string)
	c.fields["properties"].ForEach(func(name, value gjson.Result) bool {
		if !strings.HasPrefix(name.Str, "weir/") {
			tags[name.Str] = value.Str
		}
		return true
	})
	for _, t := range focusTags {
		if value := c.text(t.field); value != "" {
			tags[t.tag] = value
		}
	}
	text, _ := json.Marshal(tags) // a map of texts
	return string(text)
}

// priceDetails says which of a model's prices the call had. The names are Weir's.
func (c *charge) priceDetails() string {
	details := make(map[string]string)
	for name, field := range map[string]string{"x_PriceVersion": "price_version", "x_ServiceTier": "service_tier"} {
		if value := c.text(field); value != "" {
			details[name] = value
		}
	}
	text, _ := json.Marshal(details) // a map of texts
	return ifAny(strings.Trim(string(text), "{}"), string(text))
}

// ifAny is a value if there is another one, else "".
func ifAny(other, value string) string {
	if other == "" {
		return ""
	}
	return value
}

func always(value string) func(*charge) string { return func(*charge) string { return value } }
func cost(c *charge) string                    { return c.text("cost") }
func accountOf(c *charge) string               { return cmp.Or(c.text("account"), c.text("provider")) }
func provider(c *charge) string                { return c.text("provider") }
func focusTime(t time.Time) string             { return t.UTC().Format(time.RFC3339) }

// quantity is a number of tokens. FOCUS has decimal numbers, and its validator takes a column of whole
// ones for another type.
func quantity(c *charge) string {
	if n := c.text("total_tokens"); n != "" {
		return n + ".0"
	}
	return ""
}

func tokens(c *charge) string {
	return ifAny(c.text("total_tokens"), "Tokens")
}

// focusOutput writes a charge for each call that has a cost. FOCUS knows no charge whose cost is
// unknown: such calls are counted and left out.
type focusOutput struct {
	rows interface {
		writeRow(at time.Time, row []string) error
		finish() error
	}
	stderr   io.Writer
	unpriced int64
}

// focusCSV are rows of CSV.
type focusCSV struct{ *csv.Writer }

func (r focusCSV) writeRow(_ time.Time, row []string) error { return r.Write(row) }

func (r focusCSV) finish() error {
	r.Flush()
	return r.Error()
}

func newFOCUS(w, stderr io.Writer) (*focusOutput, error) {
	rows := focusCSV{csv.NewWriter(w)}
	names := make([]string, len(focusColumns))
	for i, column := range focusColumns {
		names[i] = column.name
	}
	return &focusOutput{rows: rows, stderr: stderr}, rows.Write(names)
}

func (o *focusOutput) write(record gjson.Result) error {
	at, err := storage.ParseTimestamp(record.Get("request_created_at").Str)
	if err != nil {
		return err
	}
	c := &charge{record.Map(), at.Time().UTC()}
	if c.text("cost") == "" {
		o.unpriced++
		return nil
	}
	row := make([]string, len(focusColumns))
	for i, column := range focusColumns {
		row[i] = column.value(c)
	}
	return o.rows.writeRow(c.at, row)
}

func (o *focusOutput) flush() error {
	if o.unpriced > 0 {
		fmt.Fprintf(o.stderr, "%s calls have no cost, because a subscription paid or no price is known: they are left out\n", formatCount(o.unpriced))
	}
	return o.rows.finish()
}
