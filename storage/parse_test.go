package storage_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/storage"
)

func TestParseFilter(t *testing.T) {
	leaf := func(g storage.Group, name string, l storage.Leaf) *storage.Leaf {
		l.Field = storage.LookupField(g, name)
		return &l
	}
	model := leaf(storage.RequestResponse, "model", storage.Leaf{Op: storage.ILike, Text: "gpt%"})
	cost := leaf(storage.RequestResponse, "cost", storage.Leaf{Op: storage.GTE, Number: storage.DecimalOf(0.25)})
	for raw, want := range map[string]storage.Filter{
		"":            storage.All{},
		" \n":         storage.All{},
		`"all"`:       storage.All{},
		`{}`:          storage.All{},
		`"\u0061ll" `: storage.All{},
		`{"request_response_rmt":{"model":{"ilike":"gpt%"}}}`: model,
		`{"left":{"request_response_rmt":{"model":{"ilike":"gpt%"}}},"operator":"and","right":"all"}`: &storage.Branch{
			Left: model, Right: storage.All{},
		},
		`{"operator":"or","right":{},"left":{"request_response_rmt":{"cost":{"gte":0.25}}}}`: &storage.Branch{
			Or: true, Left: cost, Right: storage.All{},
		},
		`{"request_response_rmt":{"properties":{"a.b":{"not-contains":"é"}}}}`: leaf(storage.RequestResponse, "properties",
			storage.Leaf{Key: "a.b", Op: storage.NotContains, Text: "é"}),
		`{"request_response_rmt":{"search_properties":{"":{"equals":""}}}}`: leaf(storage.RequestResponse, "search_properties", storage.Leaf{}),
		`{"request_response_rmt":{"scores":{"quality":{"lt":-1}}}}`: leaf(storage.RequestResponse, "scores",
			storage.Leaf{Key: "quality", Op: storage.LT, Number: storage.DecimalOf(-1)}),
		`{"request_response_rmt":{"property_key":{"equals":"env"}}}`:            leaf(storage.RequestResponse, "property_key", storage.Leaf{Text: "env"}),
		`{"request_response_rmt":{"service-score-feedback":{"equals":true}}}`:   leaf(storage.RequestResponse, storage.FeedbackScore, storage.Leaf{Bool: true}),
		`{"properties":{"env":{"like":"p_"}}}`:                                  leaf(storage.PropertiesGroup, "", storage.Leaf{Key: "env", Op: storage.Like, Text: "p_"}),
		`{"values":{"topic":{"contains":"x"}}}`:                                 leaf(storage.ValuesGroup, "", storage.Leaf{Key: "topic", Op: storage.Contains, Text: "x"}),
		`{"feedback":{"created_at":{"gt":"2026-11-20T15:04:05.6789+01:00"}}}`:   leaf(storage.FeedbackGroup, "created_at", storage.Leaf{Op: storage.GT, Time: 1795183445678}),
		`{"request":{"created_at":{"equals":"2026-11-20"}}}`:                    leaf(storage.RequestGroup, "created_at", storage.Leaf{Time: 1795132800000}),
		`{"users_view":{"user_cost":{"not-equals":0}}}`:                         leaf(storage.UsersView, "user_cost", storage.Leaf{Op: storage.NotEquals, Number: storage.DecimalOf(0)}),
		`{"sessions_request_response_rmt":{"session_tag":{"equals":"\ud800"}}}`: leaf(storage.SessionsView, "session_tag", storage.Leaf{Text: "\uFFFD"}),
	} {
		got, err := storage.ParseFilter([]byte(raw), storage.RequestResponse)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v, want %#v", raw, got, err, want)
		}
	}
}

// What chooses records to erase says so: a value that is missing does not choose all of them.
func TestParseExplicitFilter(t *testing.T) {
	const leaf = `{"request_response_rmt":{"user_id":{"equals":"all"}}}`
	for raw, want := range map[string]string{
		"":   `filter: expected "all", a leaf or a branch, got nothing`,
		`{}`: `filter: expected "all", a leaf or a branch, got an empty object`,
		`{"left":{},"operator":"or","right":` + leaf + `}`:                                          `filter.left: expected "all", a leaf or a branch, got an empty object`,
		`{"left":"all","operator":"and","right":{"left":` + leaf + `,"operator":"and","right":{}}}`: `filter.right.right: expected "all", a leaf or a branch, got an empty object`,
		`{"left":"all","operator":"and","right":` + leaf + `}`:                                      "",
		`"all"`: "",
		leaf:    "",
	} {
		got := ""
		if _, err := storage.ParseExplicitFilter([]byte(raw), storage.RequestResponse); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

func TestParseFilterErrors(t *testing.T) {
	for raw, want := range map[string]string{
		`null`:    `filter: expected "all", a leaf or a branch, got null`,
		`"none"`:  `filter: expected "all", a leaf or a branch, got the string "none"`,
		`[]`:      `filter: expected "all", a leaf or a branch, got an array`,
		`5`:       `filter: expected "all", a leaf or a branch, got the number 5`,
		`{`:       `filter: malformed JSON: unexpected end`,
		`{"left"`: `filter.left: malformed JSON: unexpected end`,
		`{a}`:     `filter: malformed JSON: invalid character 'a'`,
		`{} {}`:   `filter: malformed JSON: something follows the value`,
		`"all"x`:  `filter: malformed JSON: something follows the value`,
		"{\"request\":{\"path\":{\"equals\":\"\xff\"}}}": `filter: the text is not valid UTF-8`,

		`{"left":{},"right":{}}`:                            `filter: a branch takes left, operator and right, all three`,
		`{"left":{},"operator":"and"}`:                      `filter: a branch takes left, operator and right, all three`,
		`{"left":{},"operator":"xor","right":{}}`:           `filter.operator: expected "and" or "or", got "xor"`,
		`{"left":{},"operator":"","right":{}}`:              `filter.operator: expected "and" or "or", got ""`,
		`{"left":{},"operator":1,"right":{}}`:               `filter.operator: expected a string, got the number 1`,
		`{"left":{},"left":{}}`:                             `filter: duplicate key "left"`,
		`{"left":{},"operator":"or","right":{},"right":{}}`: `filter: duplicate key "right"`,
		`{"operator":"or","operator":"or"}`:                 `filter: duplicate key "operator"`,
		`{"left":{},"middle":{}}`:                           `filter: unknown key "middle" (known are left, operator, right)`,
		`{"left":{},"request":{}}`:                          `filter: unknown key "request" (known are left, operator, right)`,
		`{"left":{"right":null}}`:                           `filter.left.right: expected "all", a leaf or a branch, got null`,
		`{"left":{"request":{"path":{"gt":"a"}}}}`:          `filter.left.request.path: unknown operator "gt" (text fields take equals, not-equals, like, ilike, contains, not-contains)`,

		`{"jobs":{}}`:                                                `filter: unknown group "jobs" (known are request_response_rmt, request)`,
		`{"Request-response_rmt":{}}`:                                `filter: unknown group "Request-response_rmt" (did you mean "request_response_rmt"?)`,
		`{"request":{}}`:                                             `filter.request: expected one field, got an empty object`,
		`{"request":[]}`:                                             `filter.request: expected an object, got an array`,
		`{"request":{"mdoel":{}}}`:                                   `filter.request: unknown field "mdoel" (did you mean "model"?)`,
		`{"request":{"tokens":{}}}`:                                  `filter.request: unknown field "tokens" (known are id, created_at, path, user_id, model, modelOverride, org_id, prompt_id, node_id, country_code, auth_hash, prompt)`,
		`{"request":{"model_override":{}}}`:                          `filter.request: unknown field "model_override" (did you mean "modelOverride"?)`,
		`{"request":{"path":"x"}}`:                                   `filter.request.path: expected an object, got the string "x"`,
		`{"request":{"path":{}}}`:                                    `filter.request.path: expected one operator, got an empty object`,
		`{"request":{"path":{"equals":null}}}`:                       `filter.request.path.equals: expected a string, got null`,
		`{"request":{"path":{"equals":{}}}}`:                         `filter.request.path.equals: expected a string, got an object`,
		`{"request":{"created_at":{"gt":"now"}}}`:                    `filter.request.created_at.gt: "now" is no timestamp (RFC 3339 as in 2026-11-20T15:04:05Z, or a date as in 2026-11-20)`,
		`{"request":{"created_at":{"gt":1}}}`:                        `filter.request.created_at.gt: expected a string, got the number 1`,
		`{"request":{"created_at":{"not-equals":"2026-11-20"}}}`:     `filter.request.created_at: unknown operator "not-equals" (timestamp fields take equals, gte, lte, lt, gt)`,
		`{"feedback":{"rating":{"equals":1}}}`:                       `filter.feedback.rating.equals: expected true or false, got the number 1`,
		`{"request_response_rmt":{"cost":{"like":1}}}`:               `filter.request_response_rmt.cost: unknown operator "like" (number fields take equals, not-equals, gte, lte, lt, gt, is-null)`,
		`{"request_response_rmt":{"cost":{"is-null":1}}}`:            `filter.request_response_rmt.cost.is-null: expected true or false, got the number 1`,
		`{"request_response_rmt":{"cost":{"gt":"1"}}}`:               `filter.request_response_rmt.cost.gt: expected a number, got the string "1"`,
		`{"request_response_rmt":{"cost":{"gt":1e999}}}`:             `filter.request_response_rmt.cost.gt: the number 1e999 is out of range`,
		`{"request_response_rmt":{"request_body":{"equals":"x"}}}`:   `filter.request_response_rmt.request_body: unknown operator "equals" (content fields take contains)`,
		`{"request_response_rmt":{"property_key":{"contains":"x"}}}`: `filter.request_response_rmt.property_key: unknown operator "contains" (property key fields take equals)`,
		`{"request_response_rmt":{"properties":{}}}`:                 `filter.request_response_rmt.properties: expected one name, got an empty object`,
		`{"request_response_rmt":{"properties":{"a.b":{"gt":1}}}}`:   `filter.request_response_rmt.properties."a.b": unknown operator "gt" (text fields take equals, not-equals, like, ilike, contains, not-contains)`,
		`{"request_response_rmt":{"scores":{"":{"gt":"1"}}}}`:        `filter.request_response_rmt.scores."".gt: expected a number, got the string "1"`,
		`{"properties":{"env":"dev"}}`:                               `filter.properties.env: expected an object, got the string "dev"`,

		`{"request":{"path":{"equals":"a"}},"response":{"model":{"equals":"b"}}}`: `filter: a leaf takes one group, not "request" and "response": join conditions with branches`,
		`{"request":{"path":{"equals":"a"}},"left":{}}`:                           `filter: a leaf takes one group, not "request" and "left": join conditions with branches`,
		`{"request":{"path":{"equals":"a"},"model":{"equals":"b"}}}`:              `filter.request: a leaf takes one field, not "path" and "model": join conditions with branches`,
		`{"request":{"path":{"equals":"a","like":"b"}}}`:                          `filter.request.path: a leaf takes one operator, not "equals" and "like": join conditions with branches`,
		`{"request":{"path":{"equals":"a","equals":"b"}}}`:                        `filter.request.path: duplicate key "equals"`,
		`{"properties":{"a":{"equals":"a"},"b":{"equals":"a"}}}`:                  `filter.properties: a leaf takes one name, not "a" and "b": join conditions with branches`,
	} {
		got, err := storage.ParseFilter([]byte(raw), storage.RequestResponse, storage.RequestGroup)
		if err == nil {
			t.Errorf("%s: %#v, want the error %s", raw, got, want)
		} else if err.Error() != want && !(strings.HasPrefix(err.Error(), want) && strings.HasSuffix(want, "'")) {
			t.Errorf("%s:\ngot  %s\nwant %s", raw, err, want)
		}
	}
}

// A filter is as deep and as wide as the largest body has room for.
func TestParseFilterOfAnySize(t *testing.T) {
	const body = 1 << 20
	const leaf = `{"request":{"id":{"equals":""}}}`
	for name, deep := range map[string][3]string{
		"to the right": {`{"left":` + leaf + `,"operator":"and","right":`, leaf, `}`},
		"to the left":  {`{"left":`, leaf, `,"operator":"or","right":` + leaf + `}`},
		"of nothing":   {`{"operator":"or","left":"all","right":`, `{}`, `}`},
		"alternating":  {`{"left":` + leaf + `,"operator":"and","right":{"left":` + leaf + `,"operator":"or","right":`, leaf, `}}`},
	} {
		depth := (body - len(deep[1])) / len(deep[0]+deep[2])
		raw := strings.Repeat(deep[0], depth) + deep[1] + strings.Repeat(deep[2], depth)
		f, err := storage.ParseFilter([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		leaves := 0
		for range storage.Leaves(f) {
			leaves++
		}
		if want := strings.Count(raw, `"equals"`); leaves != want {
			t.Errorf("%s: %d leaves, want %d", name, leaves, want)
		}
		if storage.ContentParts(f) != 0 || !storage.Match(f, &storage.Record{}, nil) == (leaves == 0) {
			t.Errorf("%s: does not match as it should", name)
		}
		again, err := storage.ParseFilter(storage.AppendJSON(nil, f))
		if err != nil || string(storage.AppendJSON(nil, again)) != string(storage.AppendJSON(nil, f)) {
			t.Errorf("%s: is another filter after it was written: %v", name, err)
		}
		if s := storage.SplitFilter(f); s.Groups != (storage.All{}) {
			t.Errorf("%s: has parts about groups", name)
		}
	}
}

func TestFilterErrorsAreShort(t *testing.T) {
	long := strings.Repeat("é", 1<<19)
	for raw, want := range map[string]string{
		`{"request":{"` + long + `":{}}}`:                                               "filter.request: unknown field",
		`{"properties":{"` + long + `":{"equals":` + strings.Repeat("1", 1<<19) + `}}}`: "filter.properties.",
		strings.Repeat(`{"left":`, 20_000) + `{"right":1`:                               "filter.left.left.",
	} {
		if _, err := storage.ParseFilter([]byte(raw)); err == nil || !strings.HasPrefix(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%.60s: %.1200v, want %s", raw, err, want)
		}
	}
}

// The fields of each group that are promised, whatever the schema has beside them.
func TestFields(t *testing.T) {
	type table struct {
		group  storage.Group
		kind   storage.Kind
		fields string
	}
	const beyond = "end_state, finish_reason, error_type, request_model, request_path, session_id, attempt_of, cache_miss_reason, parent_request_id, root_request_id"
	want := make(map[string]bool)
	for _, row := range []table{
		{"request_response_rmt", storage.Text, "country_code, provider, model, user_id, organization_id, node_id, job_id, request_id, target_url, scores_column, cache_reference_id, assets, prompt_id, prompt_version, request_referrer, properties, search_properties, " + beyond},
		{"request_response_rmt", storage.Number, "latency, cost, time_to_first_token, status, prompt_tokens, completion_tokens, prompt_cache_read_tokens, prompt_cache_write_tokens, total_tokens, cache_savings, cache_missed_tokens, cache_loss, turn, scores"},
		{"request_response_rmt", storage.Time, "request_created_at, response_created_at"},
		{"request_response_rmt", storage.Boolean, "threat, cache_enabled, cached, service-score-feedback, is_passthrough_billing, is_subscription, stream"},
		{"request_response_rmt", storage.ContainsText, "request_body, response_body"},
		{"request_response_rmt", storage.PropertyKey, "property_key"},
		{"users_view", storage.Text, "user_user_id"},
		{"users_view", storage.Number, "user_active_for, user_total_requests, user_average_requests_per_day_active, user_average_tokens_per_request, user_total_completion_tokens, user_total_prompt_tokens, user_cost"},
		{"users_view", storage.Time, "user_first_active, user_last_active"},
		{"sessions_request_response_rmt", storage.Text, "session_session_id, session_session_name, session_tag"},
		{"sessions_request_response_rmt", storage.Number, "session_total_cost, session_total_tokens, session_prompt_tokens, session_completion_tokens, session_total_requests"},
		{"sessions_request_response_rmt", storage.Time, "session_created_at, session_latest_request_created_at"},
		{"response", storage.Text, "body_model, body_completion, model"},
		{"response", storage.Number, "body_tokens, status"},
		{"request", storage.Text, "prompt, user_id, auth_hash, org_id, id, node_id, model, modelOverride, path, country_code, prompt_id"},
		{"request", storage.Time, "created_at"},
		{"feedback", storage.Number, "id"},
		{"feedback", storage.Time, "created_at"},
		{"feedback", storage.Boolean, "rating"},
		{"feedback", storage.Text, "response_id"},
		{"properties", storage.Text, ""},
		{"values", storage.Text, ""},
	} {
		for name := range strings.SplitSeq(row.fields, ", ") {
			f := storage.LookupField(row.group, name)
			if f == nil || f.Kind != row.kind || f.Group != row.group || f.Name != name {
				t.Errorf("%s.%s is %+v, want a %s field", row.group, name, f, row.kind)
			}
			want[string(row.group)+"."+name] = true
		}
	}
	for _, f := range storage.Fields() {
		if f.Group != storage.RequestResponse && !want[string(f.Group)+"."+f.Name] { // TestManualHasTheSchema checks those
			t.Errorf("%s.%s is a field that is not promised", f.Group, f.Name)
		}
	}
}

func TestParseFilterNamesAllGroups(t *testing.T) {
	_, err := storage.ParseFilter([]byte(`{"jobs":{}}`))
	if want := "request_response_rmt, users_view, sessions_request_response_rmt, request, response, feedback, properties, values"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want all groups", err)
	}
}

func TestParseTimestamp(t *testing.T) {
	for s, want := range map[string]string{
		"2026-11-20":                          "2026-11-20T00:00:00.000Z",
		"2026-11-20T15:04:05Z":                "2026-11-20T15:04:05.000Z",
		"2026-11-20T15:04:05.6789+01:30":      "2026-11-20T13:34:05.678Z",
		"1969-12-31T23:59:59.9999Z":           "1969-12-31T23:59:59.999Z",
		"0000-01-01":                          "0000-01-01T00:00:00.000Z",
		"0000-01-01T00:00:00+01:00":           "",
		"9999-12-31T23:59:59-01:00":           "",
		"2026-11-20T15:04:05":                 "",
		"2026-02-30":                          "",
		"now":                                 "",
		"":                                    "",
		"2026-11-20T15:04:05Z and more of it": "",
	} {
		got, err := storage.ParseTimestamp(s)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%q is %v, %v, want %s", s, got, err, want)
		}
	}
}

func TestFilterGroups(t *testing.T) {
	f, err := storage.ParseFilter([]byte(`{"left":{"properties":{"a":{"equals":""}}},"operator":"or","right":
		{"left":{"users_view":{"user_cost":{"gt":1}}},"operator":"and","right":{"values":{"a":{"equals":""}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []storage.Group
	for g := range storage.Groups(f) {
		got = append(got, g)
	}
	if want := []storage.Group{"properties", "users_view", "values"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the groups are %v, want %v", got, want)
	}
	if storage.ContentParts(f) == 0 || storage.ContentParts(f.(*storage.Branch).Left) != 0 {
		t.Error("content is needed for values alone")
	}
}

func TestParseSort(t *testing.T) {
	for raw, want := range map[string][]storage.Sort{
		``:                                   nil,
		`{}`:                                 nil,
		`{"cost":"asc","created_at":"desc"}`: {{Key: storage.SortCost}, {Key: storage.SortCreatedAt, Desc: true}},
		`{"values":{"b":"desc","a":"asc"},"properties":{"":"asc"},"random":false}`: {
			{Key: storage.SortValues, Name: "b", Desc: true}, {Key: storage.SortValues, Name: "a"}, {Key: storage.SortProperties},
		},
	} {
		got, random, err := storage.ParseSort([]byte(raw))
		if err != nil || random || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, %v, want %v", raw, got, random, err, want)
		}
	}
	if _, random, err := storage.ParseSort([]byte(`{"random":true}`)); err != nil || !random {
		t.Errorf("random is %v, %v", random, err)
	}
	var many []string
	for i := range storage.MaxSortKeys + 1 {
		many = append(many, fmt.Sprintf(`"%d":"asc"`, i))
	}
	for raw, want := range map[string]string{
		`[]`:                                  `sort: expected an object, got an array`,
		`{"price":"asc"}`:                     `sort: unknown key "price" (known are `,
		`{"created":"asc"}`:                   `sort: unknown key "created" (did you mean "created_at"?)`,
		`{"latencies":"asc"}`:                 `sort: unknown key "latencies" (did you mean "latency"?)`,
		`{"createdAt":"asc"}`:                 `sort: unknown key "createdAt" (did you mean "created_at"?)`,
		`{"cost":"up"}`:                       `sort.cost: expected "asc" or "desc", got the string "up"`,
		`{"cost":1}`:                          `sort.cost: expected "asc" or "desc", got the number 1`,
		`{"random":"asc"}`:                    `sort.random: expected true or false, got the string "asc"`,
		`{"properties":"asc"}`:                `sort.properties: expected an object, got the string "asc"`,
		`{"properties":{"a":{}}}`:             `sort.properties.a: expected "asc" or "desc", got an object`,
		`{"cost":"asc","cost":"desc"}`:        `sort: duplicate key "cost"`,
		`{"cost":"asc"}}`:                     `sort: malformed JSON: something follows the value`,
		`{"cost":"asc"`:                       `sort: malformed JSON: unexpected end`,
		"{\"properties\":{\"\xff\":\"asc\"}}": `sort: the text is not valid UTF-8`,
		`{"values":{` + strings.Join(many, ",") + `}}`: `sort.values.20: more than 20 sort keys`,
	} {
		got, _, err := storage.ParseSort([]byte(raw))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v, want the error %s", raw, got, err, want)
		}
	}
}

// A filter that parses says the same after it was printed.
func FuzzParseFilter(f *testing.F) {
	for _, seed := range []string{
		`"all"`, `{}`, `{"request":{"path":{"equals":"\u0000\ud800"}}}`,
		`{"left":{"values":{"a":{"like":"%\\_"}}},"operator":"or","right":{"request_response_rmt":{"cost":{"lt":-1e-9}}}}`,
		`{"request":{"created_at":{"gte":"0000-01-01T00:00:00.999+23:59"}}}`, `{"feedback":{"rating":{"equals":false}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		filter, err := storage.ParseFilter(raw)
		if err != nil {
			return
		}
		printed := storage.AppendJSON(nil, filter)
		again, err := storage.ParseFilter(printed)
		if err != nil || !reflect.DeepEqual(filter, again) {
			t.Errorf("%s parses to %#v, printed %s and parsed again it is %#v, %v", raw, filter, printed, again, err)
		}
	})
}

func FuzzParseSort(f *testing.F) {
	f.Add([]byte(`{"cost":"asc","properties":{"a":"desc"},"random":true}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		sorts, random, err := storage.ParseSort(raw)
		if err != nil && (sorts != nil || random) || len(sorts) > storage.MaxSortKeys {
			t.Errorf("%s: %v, %v, %v", raw, sorts, random, err)
		}
	})
}

func BenchmarkParseFilter(b *testing.B) {
	raw := []byte(threeLeaves)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := storage.ParseFilter(raw); err != nil {
			b.Fatal(err)
		}
	}
}
