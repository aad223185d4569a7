package llmcommand

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// What FOCUS 1.4 says of a column of its dataset Cost and Usage.
type focusRule struct {
	presence presence
	nulls    bool
	format   func(string) bool // of a value, nil for any text
}

type presence int

const (
	mandatory presence = iota
	recommended
	// conditional columns are for those to whom the condition applies, and exempt ones for none of Weir's calls:
	// it knows no split costs, capacity reservations, commitments and contracts.
	conditional
	exempt
)

func isDecimal(text string) bool {
	_, ok := new(big.Rat).SetString(text)
	return ok && strings.Trim(text, "-.0123456789") == ""
}

func isTime(text string) bool {
	at, err := time.Parse("2006-01-02T15:04:05Z", text)
	return err == nil && at.Minute() == 0
}

// isKeyValue reports whether a text is an object of plain values.
func isKeyValue(text string) bool {
	var object map[string]any
	err := json.Unmarshal([]byte(text), &object)
	for _, v := range object {
		switch v.(type) {
		case map[string]any, []any:
			return false
		}
	}
	return err == nil
}

func oneOf(values ...string) func(string) bool {
	return func(text string) bool { return slices.Contains(values, text) }
}

// focusSpec are the 65 columns (https://focus.finops.org/focus-specification/v1-4/).
var focusSpec = map[string]focusRule{
	"AllocatedMethodDetails": {exempt, true, isKeyValue}, "AllocatedMethodId": {exempt, true, nil}, "AllocatedResourceId": {exempt, true, nil},
	"AllocatedResourceName": {exempt, true, nil}, "AllocatedTags": {exempt, true, isKeyValue},
	"AvailabilityZone": {recommended, true, nil},
	"BilledCost":       {mandatory, false, isDecimal},
	"BillingAccountId": {mandatory, false, nil}, "BillingAccountName": {mandatory, true, nil}, "BillingAccountType": {conditional, false, nil},
	"BillingCurrency":  {mandatory, false, oneOf("USD")},
	"BillingPeriodEnd": {mandatory, false, isTime}, "BillingPeriodStart": {mandatory, false, isTime},
	"CapacityReservationId": {exempt, true, nil}, "CapacityReservationStatus": {exempt, true, oneOf("Used", "Unused")},
	"ChargeCategory":    {mandatory, false, oneOf("Usage", "Purchase", "Tax", "Credit", "Adjustment")},
	"ChargeClass":       {mandatory, true, oneOf("Correction")},
	"ChargeDescription": {mandatory, true, nil},
	"ChargeFrequency":   {recommended, false, oneOf("One-Time", "Recurring", "Usage-Based")},
	"ChargePeriodEnd":   {mandatory, false, isTime}, "ChargePeriodStart": {mandatory, false, isTime},
	"CommitmentDiscountCategory": {conditional, true, oneOf("Spend", "Usage")}, "CommitmentDiscountId": {conditional, true, nil},
	"CommitmentDiscountName": {conditional, true, nil}, "CommitmentDiscountQuantity": {exempt, true, isDecimal},
	"CommitmentDiscountStatus": {conditional, true, oneOf("Used", "Unused")}, "CommitmentDiscountType": {conditional, true, nil},
	"CommitmentDiscountUnit": {exempt, true, nil}, "CommitmentProgramEligibilityDetails": {exempt, true, nil},
	"ConsumedQuantity": {conditional, true, isDecimal}, "ConsumedUnit": {conditional, true, oneOf("Tokens", "Calls")},
	"ContractApplied": {exempt, true, nil}, "ContractedCost": {mandatory, false, isDecimal}, "ContractedUnitPrice": {conditional, true, isDecimal},
	"EffectiveCost":    {mandatory, false, isDecimal},
	"HostProviderName": {mandatory, false, nil},
	"InvoiceDetailId":  {conditional, true, nil}, "InvoiceId": {conditional, true, nil}, "InvoiceIssuerName": {mandatory, false, nil},
	"ListCost": {mandatory, false, isDecimal}, "ListUnitPrice": {conditional, true, isDecimal},
	"PricingCategory": {conditional, true, oneOf("Standard", "Dynamic", "Committed", "Other")},
	"PricingCurrency": {conditional, false, oneOf("USD")}, "PricingCurrencyContractedUnitPrice": {conditional, true, isDecimal},
	"PricingCurrencyEffectiveCost": {conditional, false, isDecimal}, "PricingCurrencyListUnitPrice": {conditional, true, isDecimal},
	"PricingQuantity": {mandatory, true, isDecimal}, "PricingUnit": {mandatory, true, oneOf("1000000 Tokens", "Calls")},
	"RegionId": {conditional, true, nil}, "RegionName": {conditional, true, nil},
	"ResourceId": {conditional, true, nil}, "ResourceName": {conditional, true, nil}, "ResourceType": {conditional, true, nil},
	"ServiceCategory": {mandatory, false, oneOf("AI and Machine Learning")}, "ServiceName": {mandatory, false, nil},
	"ServiceProviderName": {mandatory, false, nil}, "ServiceSubcategory": {recommended, false, oneOf("Generative AI")},
	"SkuId": {conditional, true, nil}, "SkuMeter": {conditional, true, nil}, "SkuPriceDetails": {conditional, true, isKeyValue}, "SkuPriceId": {conditional, true, nil},
	"SubAccountId": {conditional, true, nil}, "SubAccountName": {conditional, true, nil}, "SubAccountType": {conditional, true, nil},
	"Tags": {conditional, true, isKeyValue},
}

// removedColumns are those of earlier versions, which readers of these need.
var removedColumns = []string{"ProviderName", "PublisherName"}

// An export has the columns of FOCUS 1.4 that apply, and then its own.
func TestColumnsOfFOCUS(t *testing.T) {
	if len(focusSpec) != 65 {
		t.Errorf("the specification has 65 columns, and not %d", len(focusSpec))
	}
	own := false
	names := make([]string, len(focusColumns))
	for i, c := range focusColumns {
		names[i] = c.name
		_, known := focusSpec[c.name]
		isOwn := strings.HasPrefix(c.name, "x_")
		if own = own || isOwn; own != isOwn || !isOwn && !known && !slices.Contains(removedColumns, c.name) || slices.Contains(names[:i], c.name) {
			t.Errorf("column %d: %s", i, c.name)
		}
	}
	for name, rule := range focusSpec {
		if slices.Contains(names, name) != (rule.presence != exempt) {
			t.Errorf("%s: missing %t", name, rule.presence != exempt)
		}
	}
}

// Each charge has the values that FOCUS 1.4 asks of a charge for usage, whatever a record lacks.
func TestChargesAsFOCUSWants(t *testing.T) {
	var out bytes.Buffer
	o, err := newFOCUS(&out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeRows(o, gjson.Parse(`[
		{"request_id":"r","request_created_at":"2026-11-01T06:59:59.999Z","provider":"openai","account":"eu","model":"gpt-5-mini","request_model":"gpt-5","organization_id":"acme",
			"request_user_id":"ada","session_id":"s","project":"search","key_id":"k","cost":0.014,"service_tier":"flex","price_version":"2026-11-12","total_tokens":70001,"inference_geo":"eu",
			"properties":{"Team":"a \" {b}"}},
		{"request_id":"r","request_created_at":"2026-11-01T00:00:00.000Z","cost":0.04},
		{"request_id":"r","request_created_at":"2026-02-28T23:59:59.000Z","provider":"openai","model":"gpt-image-1","cost":0.04,"total_tokens":0,"properties":{}},
		{"request_id":"r","request_created_at":"2026-12-31T23:59:59.000Z","provider":"echo","cost":0,"total_tokens":999999},
		{"request_id":"r","request_created_at":"2028-02-29T12:00:00.000Z","provider":"openai","request_model":"gpt-5","cost":12.345678901,"total_tokens":1000000}]`).Array()); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Fatalf("%v, %d rows", err, len(rows))
	}
	for n, row := range rows[1:] {
		value := make(map[string]string)
		for i, name := range rows[0] {
			value[name] = row[i]
			rule, known := focusSpec[name]
			if text := row[i]; known && (text == "" && !rule.nulls || text != "" && rule.format != nil && !rule.format(text)) {
				t.Errorf("row %d: %s is %q", n, name, text)
			}
		}
		// Of a charge for usage these are not null, although the columns may be.
		for _, name := range []string{
			"ConsumedQuantity", "ConsumedUnit", "PricingQuantity", "PricingUnit", "PricingCategory", "ListUnitPrice", "ContractedUnitPrice", "SkuId", "SkuMeter", "SkuPriceId",
		} {
			if value[name] == "" {
				t.Errorf("row %d: %s is null", n, name)
			}
		}
		for _, pair := range [][2]string{
			{"SubAccountId", "SubAccountName"}, {"SubAccountId", "SubAccountType"}, {"RegionId", "RegionName"}, {"ResourceId", "ResourceType"},
			{"BillingAccountId", "BillingAccountType"}, {"ConsumedQuantity", "ConsumedUnit"}, {"PricingQuantity", "PricingUnit"}, {"SkuPriceId", "SkuId"},
		} {
			if (value[pair[0]] == "") != (value[pair[1]] == "") {
				t.Errorf("row %d: %s is %q, and %s is %q", n, pair[0], value[pair[0]], pair[1], value[pair[1]])
			}
		}
		if name := value["ResourceName"]; name != "" && name == value["ResourceId"] {
			t.Errorf("row %d: ResourceName repeats ResourceId", n)
		}
		number := func(name string) *big.Rat {
			r, _ := new(big.Rat).SetString(value[name])
			return r
		}
		for price, cost := range map[string]string{"ListUnitPrice": "ListCost", "ContractedUnitPrice": "ContractedCost"} {
			product := new(big.Rat).Mul(number(price), number("PricingQuantity"))
			if off := product.Sub(product, number(cost)); off.Abs(off).Cmp(big.NewRat(1, 1_000_000_000)) > 0 {
				t.Errorf("row %d: %s × PricingQuantity is not %s", n, price, cost)
			}
		}
		if value["ChargePeriodStart"] < value["BillingPeriodStart"] || value["ChargePeriodEnd"] > value["BillingPeriodEnd"] {
			t.Errorf("row %d: the charge is from %s to %s, the bill from %s to %s", n, value["ChargePeriodStart"], value["ChargePeriodEnd"], value["BillingPeriodStart"], value["BillingPeriodEnd"])
		}
	}
}
