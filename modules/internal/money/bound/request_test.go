package bound_test

import (
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
)

func requestOf(t *testing.T, d plugins.Dialect, body string) bound.Request {
	t.Helper()
	o, ok := plugins.ParseObject([]byte(body))
	if !ok {
		t.Fatalf("%s is no object", body)
	}
	return bound.JSON(d, o)
}

// Vendors differ in which fields they obey and what they make of odd numbers: what one of them
// may take for no limit is none.
func TestOutputLimit(t *testing.T) {
	for body, want := range map[string]int64{
		`{}`:                0,
		`{"max_tokens":10}`: 10,
		`{"max_tokens":10,"max_completion_tokens":5}`:       10,
		`{"max_tokens":0}`:                                  0,
		`{"max_tokens":0.5}`:                                0,
		`{"max_tokens":null,"max_completion_tokens":5}`:     5,
		`{"max_tokens":"100000","max_completion_tokens":5}`: 0,
		`{"max_tokens":{},"max_completion_tokens":5}`:       0,
		`{"max_tokens":1e19}`:                               0,
		`{"max_tokens":1e400,"max_completion_tokens":5}`:    0,
	} {
		if got, err := requestOf(t, plugins.Chat, body).OutputLimit(); got != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", body, got, err, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		dialect plugins.Dialect
		body    string
		want    int64
	}{
		{plugins.Chat, `{}`, 1},
		{plugins.Chat, `{"n":3,"best_of":"5"}`, 5},
		{plugins.Completions, `{"prompt":"a","n":2}`, 2},
		{plugins.Completions, `{"prompt":["a","b","c"],"n":2}`, 6},
		{plugins.Completions, `{"prompt":[1,2,3]}`, 1},
		{plugins.Completions, `{"prompt":[[1,2],[3]]}`, 2},
		{plugins.GenerateContent, `{"generation_config":{"candidateCount":2,"candidate_count":4}}`, 4},
	} {
		if got := requestOf(t, c.dialect, c.body).Answers(); got != c.want {
			t.Errorf("%s: %d answers, want %d", c.body, got, c.want)
		}
	}
}

// What bounds the cost stands once, under its own name, beside the other fields.
func TestWhatHidesABoundIsRefused(t *testing.T) {
	for body, refused := range map[string]bool{
		`{"max_tokens":1,"extra_body":{"google":{"thinking_config":{}}},"topK":1}`: false,
		`{"max_tokens":1,"MAX_TOKENS":1000}`:                                       true,
		`{"max_completion_tokens":1,"Max_Tokens":1000}`:                            true,
		`{"max_completion_tokens":1,"max_to\u212aens":1000}`:                       true,
		`{"max_tokens":1,"max_token\u017f":1000}`:                                  true,
		`{"stream":false,"Stream":true}`:                                           true,
		`{"N":100}`:                                                                true,
		`{"Models":["dear"]}`:                                                      true,
		`{"max_tokens":1,"extra_body":{"max_tokens":1000}}`:                        true,
		`{"max_tokens":1,"extra_body":{"N":100}}`:                                  true,
		`{"max_tokens":1,"extra_body":{"service_tier":"priority"}}`:                true,
	} {
		if err := requestOf(t, plugins.Chat, body).Check(); (err != nil) != refused {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// The limit of the output stands in the configuration, in one of two spellings.
func TestOutputLimitOfGemini(t *testing.T) {
	for body, want := range map[string]int64{
		`{}`:                                     0,
		`{"generationConfig":{"temperature":1}}`: 0,
		`{"generationConfig":{"maxOutputTokens":100}}`:                                                  100,
		`{"generation_config":{"max_output_tokens":100}}`:                                               100,
		`{"generationConfig":{"maxOutputTokens":100,"max_output_tokens":1000}}`:                         1000,
		`{"generationConfig":{"maxOutputTokens":100,"maxOutputTokens":1000}}`:                           1000,
		`{"generationConfig":{"maxOutputTokens":100},"generation_config":{}}`:                           0,
		`{"generationConfig":{"maxOutputTokens":100},"generation_config":{"max_output_tokens":1000}}`:   1000,
		`{"generationConfig":{"maxOutputTokens":"100"}}`:                                                0,
		`{"generationConfig":{"maxOutputTokens":-1}}`:                                                   0,
		`{"generationConfig":{"maxOutputTokens":0}}`:                                                    0,
		`{"generationConfig":{"maxOutputTokens":1e18}}`:                                                 0,
		`{"generationConfig":null,"generation_config":{"max_output_tokens":100}}`:                       0,
		`{"generationConfig":{"maxOutputTokens":100},"generation_config":{"max_output_tokens":"1000"}}`: 0,
	} {
		if got, err := requestOf(t, plugins.GenerateContent, body).OutputLimit(); got != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", body, got, err, want)
		}
	}
}

// formNames are the fields of a form without values.
type formNames []string

func (formNames) Get(string) gjson.Result { return gjson.Result{} }

func (n formNames) Names(do func(string) bool) { slices.Values(n)(do) }

// Servers differ in which of two fields of a form they take. Lists have brackets.
func TestFieldsOfFormsStandOnce(t *testing.T) {
	for _, c := range []struct {
		names   formNames
		refused bool
	}{
		{formNames{"model", "n", "include[]", "include[]"}, false},
		{formNames{"n", "model", "n"}, true},
		{formNames{"quality", "Quality"}, true},
	} {
		r := bound.Request{Dialect: plugins.Images, Form: true, Fields: c.names}
		if err := r.Check(); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.names, err)
		}
	}
}
