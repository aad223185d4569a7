package question

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/storage"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestFilter(t *testing.T) {
	leaf := func(inner string) string { return `{"request_response_rmt":{` + inner + `}}` }
	both := func(a, b string) string { return `{"left":` + a + `,"operator":"and","right":` + b + `}` }
	either := func(a, b string) string { return strings.Replace(both(a, b), `"and","right":`+b, `"or","right":`+b, 1) }
	mini := leaf(`"model":{"equals":"gpt-4o-mini"}`)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, `"all"`},
		{[]string{"all"}, `"all"`},
		{[]string{"all", "model=gpt-4o-mini"}, mini},
		{[]string{"model=gpt-4o-mini"}, mini},
		{[]string{"model=gpt-4o-mini all"}, mini},
		{[]string{"  model=gpt-4o-mini\t"}, mini},
		{[]string{"model!=x"}, leaf(`"model":{"not-equals":"x"}`)},
		{[]string{"model~GPT"}, leaf(`"model":{"contains":"GPT"}`)},
		{[]string{"model!~GPT"}, leaf(`"model":{"not-contains":"GPT"}`)},
		{[]string{"cost>0.01"}, leaf(`"cost":{"gt":0.01}`)},
		{[]string{"cost>=1e-3"}, leaf(`"cost":{"gte":1e-3}`)},
		{[]string{"status<500"}, leaf(`"status":{"lt":500}`)},
		{[]string{"status<=-1"}, leaf(`"status":{"lte":-1}`)},
		{[]string{"status!=200"}, leaf(`"status":{"not-equals":200}`)},
		{[]string{"cached=true"}, leaf(`"cached":{"equals":true}`)},
		{[]string{"feedback=false"}, leaf(`"service-score-feedback":{"equals":false}`)},
		{[]string{"user="}, leaf(`"user_id":{"equals":""}`)},
		{[]string{`user="Ada Lovelace"`}, leaf(`"user_id":{"equals":"Ada Lovelace"}`)},
		{[]string{`user="say \"a=b\" \\ now"`}, leaf(`"user_id":{"equals":"say \"a=b\" \\ now"}`)},
		{[]string{`user=a=b!~"c"`}, leaf(`"user_id":{"equals":"a=b!~\"c\""}`)},
		{[]string{"cost=null"}, leaf(`"cost":{"is-null":true}`)},
		{[]string{"cost!=null"}, leaf(`"cost":{"is-null":false}`)},
		{[]string{"score.quality=null"}, leaf(`"scores":{"quality":{"is-null":true}}`)},
		{[]string{`user="null"`}, leaf(`"user_id":{"equals":"null"}`)},
		{[]string{"user=ada or user=bob"}, either(leaf(`"user_id":{"equals":"ada"}`), leaf(`"user_id":{"equals":"bob"}`))},
		{[]string{"in>1", "out>2", "or", "tokens>3", "or", mini}, either(
			either(both(leaf(`"prompt_tokens":{"gt":1}`), leaf(`"completion_tokens":{"gt":2}`)), leaf(`"total_tokens":{"gt":3}`)), mini)},
		{[]string{"(user=ada OR user=bob) " + "in>1"}, both(either(leaf(`"user_id":{"equals":"ada"}`), leaf(`"user_id":{"equals":"bob"}`)), leaf(`"prompt_tokens":{"gt":1}`))},
		{[]string{"in>1", "(", `user="a)"`, "or", "( user=bob out>2 )", ")"}, both(leaf(`"prompt_tokens":{"gt":1}`), either(leaf(`"user_id":{"equals":"a)"}`), both(leaf(`"user_id":{"equals":"bob"}`), leaf(`"completion_tokens":{"gt":2}`))))},
		{[]string{`user="a)"`}, leaf(`"user_id":{"equals":"a)"}`)},
		{[]string{"user=or"}, leaf(`"user_id":{"equals":"or"}`)},
		{[]string{"in>1", "out>2"}, both(leaf(`"prompt_tokens":{"gt":1}`), leaf(`"completion_tokens":{"gt":2}`))},
		{[]string{"in>1 out>2 tokens>3"}, both(both(leaf(`"prompt_tokens":{"gt":1}`), leaf(`"completion_tokens":{"gt":2}`)), leaf(`"total_tokens":{"gt":3}`))},
		{[]string{"session=s1"}, leaf(`"properties":{"Service-Session-Id":{"equals":"s1"}}`)},
		{[]string{"property.env=prod"}, leaf(`"properties":{"env":{"equals":"prod"}}`)},
		{[]string{"property.a.b!=x"}, leaf(`"properties":{"a.b":{"not-equals":"x"}}`)},
		{[]string{`property."User Tier=1"~gold`}, leaf(`"properties":{"User Tier=1":{"contains":"gold"}}`)},
		{[]string{"property_key=env"}, leaf(`"property_key":{"equals":"env"}`)},
		{[]string{"score.accuracy>=0.5"}, leaf(`"scores":{"accuracy":{"gte":0.5}}`)},
		{[]string{"body~hello"}, leaf(`"request_body":{"contains":"hello"}`)},
		{[]string{`response~"two words"`}, leaf(`"response_body":{"contains":"two words"}`)},
		{[]string{"user=日本"}, leaf(`"user_id":{"equals":"日本"}`)},
		{[]string{"time>=2026-11-20T15:04:05+02:00"}, leaf(`"request_created_at":{"gte":"2026-11-20T13:04:05.000Z"}`)},
		{[]string{"ended<2026-11-20"}, leaf(`"response_created_at":{"lt":"2026-11-20T00:00:00.000Z"}`)},
		{[]string{"since=90m"}, leaf(`"request_created_at":{"gte":"2026-11-20T10:30:00.000Z"}`)},
		{[]string{"until=1d"}, leaf(`"request_created_at":{"lt":"2026-11-19T12:00:00.000Z"}`)},
		{[]string{"since=2026-11-19"}, leaf(`"request_created_at":{"gte":"2026-11-19T00:00:00.000Z"}`)},
		{[]string{mini}, mini},
		{[]string{" " + mini, "cost>1"}, both(mini, leaf(`"cost":{"gt":1}`))},
		{[]string{"{}"}, `"all"`},
		{[]string{`{"left":"all","operator":"or","right":` + mini + `}`}, `{"left":"all","operator":"or","right":` + mini + `}`},
	} {
		f, err := ParseFilter(tc.args, noon)
		if err != nil {
			t.Errorf("%q: %v", tc.args, err)
			continue
		}
		if got := string(storage.AppendJSON(nil, f)); got != tc.want {
			t.Errorf("%q is\n%s, want\n%s", tc.args, got, tc.want)
		}
	}
}

func TestFilterErrors(t *testing.T) {
	for arg, want := range map[string]string{
		"model":                      `"model": expected <field><operator><value>`,
		"cost>1 gpt-4o":              `"gpt-4o": expected <field><operator><value>`,
		"user=Ada Lovelace":          `"Lovelace": expected`,
		"model =x":                   `"model": expected`,
		"mdoel=x":                    `"mdoel=x": unknown field "mdoel" (did you mean "model"?)`,
		"=x":                         `unknown field ""`,
		"properties=x":               `unknown field "properties"`,
		"property.=x":                `unknown field "property."`,
		"":                           `an argument is blank`,
		" ":                          `an argument is blank`,
		"model=a)":                   `a ) has no ( before it; quote values that have one`,
		"id=xyz":                     `"xyz" is no id of a request`,
		"model>x":                    `"model>x": text fields take = != ~ !~, not >`,
		"cost~1":                     `number fields take = != >= > <= <, not ~`,
		"body=x":                     `content fields take ~, not =`,
		"cached!=true":               `boolean fields take =, not !=`,
		"cost>abc":                   `"cost>abc": "abc" is no number`,
		"cost>":                      `"" is no number`,
		"or":                         `or stands between two terms`,
		"or user=ada":                `or stands between two terms`,
		"user=ada or":                `or stands between two terms`,
		"user=ada or or user=bob":    `or stands between two terms`,
		"user=ada or orange":         `"orange": expected`,
		"(user=ada":                  `a ( has no ) behind it`,
		"user=ada )":                 `a ) has no ( before it`,
		"()":                         `or stands between two terms, and parentheses around some`,
		"(user=ada or) cost>1":       `or stands between two terms`,
		"session=null":               `session is a text, and null is for numbers; write session="" for an empty text, or session="null" for the word`,
		"cost>null":                  `"null" is no number`,
		"cost>1 status=NaN":          `"status=NaN": "NaN" is no number`,
		"cost>1e999":                 `is no number`,
		"cached=yes":                 `expected true or false, not "yes"`,
		"time>yesterday":             `is no timestamp`,
		"since=soon":                 `and no age such as 90m or 7d`,
		"since=-1h":                  `is no timestamp`,
		"since>1h":                   `since takes =, not >`,
		`user="Ada`:                  `no quoted text begins at "Ada`,
		`user="Ada"Lovelace`:         `a blank must follow`,
		`property."x=1`:              `no quoted text begins at "x=1`,
		"user=\xff":                  `not valid UTF-8`,
		`user="\xff"`:                `no quoted text`,
		`["all"]`:                    `filter: expected "all", a leaf or a branch`,
		`{"request_response_rmt":{`:  `malformed JSON`,
		`{"request_response_rm":{}}`: `unknown group "request_response_rm"`,
	} {
		f, err := ParseFilter([]string{arg}, noon)
		if err == nil {
			t.Errorf("%s is %s, want an error", arg, storage.AppendJSON(nil, f))
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to say %s", arg, err, want)
		}
	}
}

// FuzzFilter checks that whatever is taken is a filter that the API takes and
// understands in the same way.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{
		"all", `model=gpt-4o-mini cost>0.01 property.env=prod`, `user="Ada \"L\" \u00e9" since=1h`, `since=2026-11-20 until=0s`,
		`score.x!=-1e-7 body~{}`, `{"request_response_rmt":{"model":{"like":"%"}}}`, `property."a b"!~"" ttft<=1`, `"model"="x"`, `!=~`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		filter, err := ParseFilter([]string{s}, noon)
		if err != nil {
			return
		}
		text := storage.AppendJSON(nil, filter)
		read, err := storage.ParseFilter(text, storage.RequestResponse)
		if err != nil {
			t.Fatalf("%q is %s: %v", s, text, err)
		}
		if again := storage.AppendJSON(nil, read); string(again) != string(text) {
			t.Fatalf("%q is %s, read as %s", s, text, again)
		}
	})
}
