package intake

import "testing"

// An error names the field and what it takes, as JSON has it.
func TestDecodeNamesWhatIsExpected(t *testing.T) {
	for body, want := range map[string]string{
		`{"name":7}`:                "name: a string is expected, not a number",
		`{"limit":"x"}`:             "limit: a number is expected, not a string",
		`{"limit":1e999}`:           "limit: a number is expected, not 1e999",
		`{"count":1.5}`:             "count: a whole number is expected, not 1.5",
		`{"to":{}}`:                 "to: an array is expected, not an object",
		`{"inner":{"on":[]}}`:       "inner.on: true or false is expected, not an array",
		`[]`:                        "the body: an object is expected, not an array",
		`{"nam":"x"}`:               `unknown field "nam"`,
		`{"name":"x","limit":null}`: "",
	} {
		var v struct {
			Name  string   `json:"name"`
			Limit *float64 `json:"limit"`
			Count int      `json:"count"`
			To    []string `json:"to"`
			Inner struct {
				On bool `json:"on"`
			} `json:"inner"`
		}
		got := ""
		if err := Decode([]byte(body), &v); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
