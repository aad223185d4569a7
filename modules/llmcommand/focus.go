package llmcommand

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/storage"
)

// formatFOCUS is CSV with the columns of the FinOps Open Cost and Usage Specification.
const formatFOCUS = "focus"

// focusColumns are those that FOCUS 1.0 to 1.4 ask of a usage charge, and the call's id. A column
// without a value is null. ProviderName and PublisherName are mandatory up to 1.3 and removed from 1.4
// (https://github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec/issues/1888): readers of earlier
// versions need them.
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
	{"ConsumedQuantity", func(c *charge) string { return c.consumed }},
	{"ConsumedUnit", func(c *charge) string { return c.unit }},
	{"PricingQuantity", func(c *charge) string { return c.quantity }},
	{"PricingUnit", func(c *charge) string { return c.pricingUnit }},
	{"PricingCategory", always("Standard")},
	{"ContractedUnitPrice", func(c *charge) string { return c.unitPrice }},
	{"ListUnitPrice", func(c *charge) string { return c.unitPrice }},
	{"PricingCurrency", always("USD")},
	{"PricingCurrencyContractedUnitPrice", func(c *charge) string { return c.unitPrice }},
	{"PricingCurrencyEffectiveCost", cost},
	{"PricingCurrencyListUnitPrice", func(c *charge) string { return c.unitPrice }},
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
	{"ResourceName", always("")}, // a model has no name beside its id
	{"ResourceType", func(c *charge) string { return ifAny(c.text("model"), "Model") }},
	{"SkuId", sku},
	{"SkuMeter", func(c *charge) string { return c.unit }},
	{"SkuPriceDetails", func(c *charge) string {
		return ifAny(c.text("service_tier"), `{"x_ServiceTier":`+c.fields["service_tier"].Raw+`}`)
	}},
	{"SkuPriceId", func(c *charge) string { return sku(c) + ifAny(c.text("service_tier"), "/"+c.text("service_tier")) }},
	{"Tags", (*charge).tags},
	{"x_PriceVersion", func(c *charge) string { return c.text("price_version") }},
	{"x_WeirRequestId", func(c *charge) string { return c.text("request_id") }},
}

// focusFields are the fields of records that charges are made of.
var focusFields = []string{
	"request_id", "request_created_at", "cost", "account", "provider", "project", "model", "request_model", "inference_geo", "total_tokens",
	"price_version", "service_tier", "properties", "organization_id", "request_user_id", "session_id", "key_id",
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
	// consumed is the number of units, such as Tokens. quantity is the number of pricing units, and
	// unitPrice the price of one.
	consumed, unit, quantity, pricingUnit, unitPrice string
}

const (
	// tokensPerPrice is the number of tokens that have a price in FOCUS.
	tokensPerPrice = 1_000_000
	// maxUnitPrice is the largest price of a column of Parquet, in billionths of a US dollar.
	maxUnitPrice = 999_999_999_999_999_999
)

// newCharge returns the charge of a call that has a cost. FOCUS wants a quantity and a unit price of each:
// the price is that of the call's tokens on average, because input and output have prices of their own. A
// call without tokens, such as one for an image, is one unit.
func newCharge(record gjson.Result, at time.Time) (*charge, error) {
	c := &charge{fields: record.Map(), at: at}
	c.consumed, c.unit, c.quantity, c.pricingUnit, c.unitPrice = "1.0", "Calls", "1.0", "Calls", cost(c)
	amount, err := reconcile.ParseAmount(c.unitPrice, 0)
	if err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	n := c.fields["total_tokens"].Int()
	if n <= 0 || amount.Nanodollars < 0 {
		return c, nil
	}
	high, low := bits.Mul64(uint64(amount.Nanodollars), tokensPerPrice)
	if high >= uint64(n) {
		return c, nil
	}
	price, _ := bits.Div64(high, low, uint64(n))
	if price > maxUnitPrice {
		return c, nil
	}
	// FOCUS has decimal numbers, and its validator takes a column of whole ones for another type.
	c.consumed, c.unit = strconv.FormatInt(n, 10)+".0", "Tokens"
	c.quantity, c.pricingUnit = decimal(n, 6), strconv.Itoa(tokensPerPrice)+" Tokens"
	c.unitPrice = decimal(int64(price), 9)
	return c, nil
}

// decimal is a number divided by a power of ten, with all digits after the point.
func decimal(n int64, digits int) string {
	text := fmt.Sprintf("%0*d", digits+1, n)
	return text[:len(text)-digits] + "." + text[len(text)-digits:]
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

// ifAny is a value if there is another one, else "".
func ifAny(other, value string) string {
	if other == "" {
		return ""
	}
	return value
}

func always(value string) func(*charge) string { return func(*charge) string { return value } }
func cost(c *charge) string                    { return c.text("cost") }
func accountOf(c *charge) string               { return cmp.Or(c.text("account"), provider(c)) }
func sku(c *charge) string {
	return cmp.Or(c.text("model"), c.text("request_model"), provider(c))
}

// provider is not null in FOCUS. Who reports calls may leave it out.
func provider(c *charge) string    { return cmp.Or(c.text("provider"), "unknown") }
func focusTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

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

func (o *focusOutput) fields() []string { return focusFields }

func (o *focusOutput) write(record gjson.Result) error {
	at, err := storage.ParseTimestamp(record.Get("request_created_at").Str)
	if err != nil {
		return err
	}
	if record.Get("cost").Type == gjson.Null {
		o.unpriced++
		return nil
	}
	c, err := newCharge(record, at.Time().UTC())
	if err != nil {
		return err
	}
	row := make([]string, len(focusColumns))
	for i, column := range focusColumns {
		row[i] = column.value(c)
	}
	return o.rows.writeRow(c.at, row)
}

func (o *focusOutput) flush() error {
	if o.unpriced > 0 {
		fmt.Fprintf(o.stderr, "%s calls have no cost, because a subscription paid or no price is known: they are left out. weir query cost=null shows them\n", formatCount(o.unpriced))
	}
	return o.rows.finish()
}
