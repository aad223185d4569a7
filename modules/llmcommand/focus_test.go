package llmcommand

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// Each call with a cost is a charge, whose cost has all its digits. A call without a cost is
// counted, and a property cannot pass for a tag of Weir.
func TestExportAsFOCUS(t *testing.T) {
	var out, stderr bytes.Buffer
	o, err := newFOCUS(&out, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeRows(o, gjson.Parse(`[
		{"request_id":"r","request_created_at":"2026-12-31T23:59:59.000Z","provider":"openai","account":"eu","model":"gpt-5-mini","request_model":"gpt-5-mini","organization_id":"acme",
			"request_user_id":"ada","session_id":null,"project":"search","key_id":null,"cost":0.000000014,"service_tier":"flex","price_version":"2026-11-12","total_tokens":7,"inference_geo":"eu",
			"properties":{"Team":"a, b","weir/user":"eve"}},
		{"request_id":"s","request_created_at":"2027-01-01T00:00:00.000Z","provider":"openai","cost":null,"list_cost":1}]`).Array()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stderr.String(), "1 calls have no cost") {
		t.Errorf("stderr %q", stderr.String())
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v, %d rows", err, len(rows))
	}
	got := make(map[string]string)
	for i, name := range rows[0] {
		got[name] = rows[1][i]
	}
	for name, want := range map[string]string{
		"BilledCost": "0.000000014", "ListCost": "0.000000014", "BillingAccountId": "eu", "SubAccountId": "search", "ProviderName": "openai",
		"BillingPeriodStart": "2026-12-01T00:00:00Z", "BillingPeriodEnd": "2027-01-01T00:00:00Z",
		"ChargePeriodStart": "2026-12-31T23:00:00Z", "ChargePeriodEnd": "2027-01-01T00:00:00Z", "ConsumedQuantity": "7.0", "ConsumedUnit": "Tokens",
		"PricingQuantity": "0.000007", "PricingUnit": "1000000 Tokens", "ListUnitPrice": "0.002000000", "ContractedUnitPrice": "0.002000000",
		"PricingCurrency": "USD", "PricingCurrencyEffectiveCost": "0.000000014", "PricingCurrencyListUnitPrice": "0.002000000",
		"ServiceSubcategory": "Generative AI", "SubAccountType": "Project", "SkuMeter": "Tokens", "SkuPriceDetails": `{"x_ServiceTier":"flex"}`, "x_PriceVersion": "2026-11-12", "InvoiceId": "", "RegionId": "eu",
		"SkuPriceId": "gpt-5-mini/flex", "x_WeirRequestId": "r",
		"Tags": `{"Team":"a, b","weir/model":"gpt-5-mini","weir/organization":"acme","weir/project":"search","weir/user":"ada"}`,
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// A call without tokens, or whose price of a token no column can hold, is one unit.
func TestChargesWithoutATokenPrice(t *testing.T) {
	for record, price := range map[string]string{
		`{"cost":0.04,"total_tokens":null}`: "0.04", `{"cost":9000,"total_tokens":1}`: "9000", `{"cost":9000000000,"total_tokens":0}`: "9000000000",
	} {
		c, err := newCharge(gjson.Parse(record), time.Now())
		if err != nil || c.unitPrice != price || c.quantity != "1.0" || c.pricingUnit != "Calls" || c.consumed != "1.0" || c.unit != "Calls" {
			t.Errorf("%s: %+v, %v", record, c, err)
		}
	}
}
