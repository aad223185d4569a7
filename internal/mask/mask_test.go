package mask

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/weirhq/weir/test/agents"
	"github.com/weirhq/weir/test/prose"
)

func all(t testing.TB, rules ...*Rule) *Masker {
	t.Helper()
	m, err := New(append([]*Rule{{Kinds: Kinds}}, rules...))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// examples have a value of each kind in each of its forms.
var examples = map[string][]string{
	"email": {"alice@example.com", "a.b+c@mail.example.co.uk", "jörg@müller.de", "alice%40example.com"},
	"card": {
		"4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", "3782 822463 10005",
		"6011 1111 1111 1117", "30569309025904", "4111\u00a01111\u00a01111\u00a01111", "2223003122003222",
		"4111–1111–1111–1111", "4111\u20091111\u20091111\u20091111", "4111%201111%201111%201111",
	},
	"iban":  {"DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "GB29 NWBK 6016 1331 9268 19", "fr1420041010050500013m02606", "NO9386011117947"},
	"phone": {"+49 30 901820", "+1 (212) 555-0123", "(212) 555-0123", "212-555-0123", "+442079460958", "0049 30 901820 55", "030 901820 55", "06.12.34.56.78", "020 7946 0958"},
	"national_id": {
		"12345678Z", "12345678-Z", "12345678z", "X1234567L", "x1234567l", "RSSMRA85T10A562S", "BSN 111222333", "44051401359", "529.982.247-25", "52998224725",
		"11.222.333/0001-81", "811228-9874", "19811228-9874", "86 095 742 719", "2341 2341 2346", "85.07.30-033.28", "943 476 5919",
	},
	"key": {
		"sk-proj-abcdefghij0123456789", "AKIAIOSFODNN7EXAMPLE", "ghp_0123456789abcdefghijABCDEFGHIJ012345",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIBOgIBAAJBAKj34GkxFhD9\n-----END RSA PRIVATE KEY-----",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBGPGP\n-----END PGP PRIVATE KEY BLOCK-----",
		"hf_abcdefghijKLMNOPQRstuvwxyzABCDEFGH", "AKIAIOSFODNNXEXAMPLE", "eyJ" + strings.Repeat("hbGciOiJ", 400) + "1.eyJzdWIiOiIx.dozjgNryP4J3",
	},
}

// Each value is found in plain text and in JSON, in an argument of a tool within JSON, and if
// each of its letters is escaped.
func TestEachKindIsFoundAsItReads(t *testing.T) {
	m := all(t)
	for kind, values := range examples {
		label := "[" + strings.ToUpper(kind) + "]"
		for _, value := range values {
			sentence := "Please take " + value + ", thanks."
			want := strings.Replace(sentence, value, label, 1)
			if strings.HasPrefix(value, "BSN ") {
				want = "Please take BSN " + label + ", thanks."
			}
			counts := make(Counts)
			if got := m.Text(sentence, counts); got != want || counts[kind] != 1 || len(counts) != 1 {
				t.Errorf("%s: %q, %v", kind, got, counts)
			}
			for name, body := range map[string]string{
				"JSON":        mustJSON(map[string]any{"content": sentence, "n": 1}),
				"argument":    mustJSON(map[string]any{"arguments": mustJSON(map[string]string{"to": sentence})}),
				"escaped":     `{"content":"` + escaped(sentence, `\u%04x`) + `"}`,
				"nested":      `{"content":"{\"a\":\"` + escaped(sentence, `\\u%04x`) + `\"}"}`,
				"twice":       `{"content":"{\"a\":\"{\\\"b\\\":\\\"` + escaped(sentence, `\\\\u%04x`) + `\\\"}\"}"}`,
				"name":        mustJSON(map[string]any{sentence: 1}),
				"in the list": "[" + mustJSON(sentence) + "]",
			} {
				got := m.Body([]byte(body), nil)
				if !json.Valid(got) || !bytes.Contains(got, []byte(label)) {
					t.Errorf("%s, %s: %s", kind, name, got)
				}
			}
		}
	}
}

// A value is found however its characters are written: in wide forms, in digits of other scripts, and with
// characters between that nobody sees.
func TestDisguisedValues(t *testing.T) {
	write := func(value string, as func(rune) string) string {
		var text strings.Builder
		for _, c := range value {
			text.WriteString(as(c))
		}
		return text.String()
	}
	digits := func(zero rune) func(rune) string {
		return func(c rune) string {
			if '0' <= c && c <= '9' {
				c += zero - '0'
			}
			return string(c)
		}
	}
	m := all(t, &Rule{Kinds: []string{"patient"}, Patterns: []string{`PAT-\d+`}, Words: []string{"Ada Lovelace"}})
	for kind, value := range map[string]string{
		"email": "alice@example.com", "card": "4111 1111 1111 1111", "iban": "DE89 3704 0044 0532 0130 00", "phone": "+49 30 901820",
		"national_id": "44051401359", "key": "sk-proj-abcdefghij0123456789", "patient": "PAT-4711",
	} {
		disguises := map[string]func(rune) string{
			"a soft hyphen": func(c rune) string { return string(c) + "\u00ad" }, "a space of no width": func(c rune) string { return "\u200b" + string(c) },
			"a direction": func(c rune) string { return "\u202e" + string(c) },
			"wide": func(c rune) string {
				if c == ' ' {
					return "\u3000"
				}
				return string(c - '!' + '！')
			},
			"escapes of a URL": func(c rune) string { return fmt.Sprintf("%%%02X", c) },
			"a URL in a URL":   func(c rune) string { return url.PathEscape(url.PathEscape(string(c))) },
			"wide in a URL": func(c rune) string {
				if c == ' ' {
					return "%20"
				}
				return url.QueryEscape(string(c - '!' + '！'))
			},
			"one in another": func(c rune) string { return fmt.Sprintf("%%2525%02x", c) },
		}
		if kind != "email" && kind != "key" {
			disguises["Arabic digits"], disguises["Devanagari digits"], disguises["bold digits"] = digits('٠'), digits('०'), digits('𝟎')
		}
		label := "[" + strings.ToUpper(kind) + "]"
		for name, as := range disguises {
			disguised := write(value, as)
			counts := make(Counts)
			if got := m.Text("Take "+disguised+", 谢谢。", counts); !strings.Contains(got, label) || !strings.HasSuffix(got, ", 谢谢。") || len(counts) != 1 {
				t.Errorf("%s, %s: %q, %v", kind, name, got, counts)
			}
			for _, body := range []string{
				mustJSON(map[string]string{"content": disguised}), `{"content":"` + escaped(disguised, `\u%04x`) + `"}`,
				mustJSON(map[string]any{"arguments": `{"to":"` + escaped(disguised, `\u%04x`) + `"}`}),
			} {
				if got := m.Body([]byte(body), nil); !json.Valid(got) || !bytes.Contains(got, []byte(label)) {
					t.Errorf("%s, %s: %s", kind, name, got)
				}
			}
		}
	}
	for _, text := range []string{"你好！１２３，４５６。", "الهاتف ١٢٣", "👩\u200d👩\u200d👧 ＡＢＣ", "a\u00adb"} {
		if got := m.Text(text, nil); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	one, err := m.WithKey([]byte("secret"), "acme")
	if err != nil || one.Name("alice@example.com", nil) != one.Name("ａｌｉｃｅ＠ｅｘａｍｐｌｅ．ｃｏｍ", nil) {
		t.Error("a person has two pseudonyms", err)
	}
}

// What stands around a value does not hide it, and stays.
func TestValuesWithoutSpacesAroundThem(t *testing.T) {
	m := all(t, &Rule{Kinds: []string{"person"}, Words: []string{"张伟", "สมชาย", "Zoë Müller"}})
	for text, want := range map[string]string{
		"alice@example.com。请联系":                                                 "[EMAIL]。请联系",
		"邮箱：alice@example.com，谢谢":                                               "邮箱：[EMAIL]，谢谢",
		"联系alice@example.com请回复":                                                "联系[EMAIL]请回复",
		"alice@example.com...and":                                               "[EMAIL]...and",
		"alice@example.com-2024-01":                                             "[EMAIL]-2024-01",
		"alice@example.com.2024":                                                "[EMAIL].2024",
		"bob@2x.com, logo@2x.PNG":                                               "[EMAIL], logo@2x.PNG",
		"?mail%3Dalice%40example.com%26card%3D4111111111111111":                 "?mail%3D[EMAIL]%26card%3D[CARD]",
		"?to=a%2Bb%40example.com&n=%204111111111111111%A04111":                  "?to=[EMAIL]&n=%20[CARD]%A04111",
		"?to=Ren%E9%40example.com&n=%E9%204111111111111111":                     "?to=[EMAIL]&n=%E9%20[CARD]",
		"100%, 50%zz alice@example.com %4":                                      "100%, 50%zz [EMAIL] %4",
		"key%3Dsk-proj-abcdefghij0123456789":                                    "key%3D[KEY]",
		"tel%3D%2B49%2030%20901820":                                             "tel%3D[PHONE]",
		"\x1b[31msk-proj-abcdefghij0123456789\x1b[0m":                           "\x1b[31m[KEY]\x1b[0m",
		"\x1b[1;31m4111111111111111\x1b[0m":                                     "\x1b[1;31m[CARD]\x1b[0m",
		"q=I+am+alice@example.com&card=4111+1111+1111+1111&tel=%2B49+30+901820": "q=[EMAIL]&card=[CARD]&tel=[PHONE]",
		"https://a.example/?iban=DE89+3704+0044+0532+0130+00#4111+1111":         "https://a.example/?iban=[IBAN]#4111+1111",
		"tel=+49%2030%20901820&to=a+b@example.com&from=c%2Bd@example.com":       "tel=[PHONE]&to=[EMAIL]&from=[EMAIL]",
		"4111+1111+1111+1111, x = 4111+1111+1111+1111":                          "4111+1111+1111+1111, x = 4111+1111+1111+1111",
		"请问张伟在吗":                                                                "请问[PERSON]在吗",
		"คุณสมชายอยู่ไหม":                                                       "คุณ[PERSON]อยู่ไหม",
		"name=Zo%C3%AB+M%C3%BCller&Zo%C3%AB+M%C3%BCller=1":                      "name=[PERSON]&[PERSON]=1",
		"Zoe\u0308 Mu\u0308ller and zo\u00cb m\u00fcller":                       "[PERSON] and [PERSON]",
		`{"bsn":111222333}`:                                                     `{"bsn":"[NATIONAL_ID]"}`,
		`{"bsn":"111222333","id":111222333}`:                                    `{"bsn":"[NATIONAL_ID]","id":111222333}`,
		`{"tax_id": "86095742719", "rating": 86095742719}`:                      `{"tax_id": "[NATIONAL_ID]", "rating": 86095742719}`,
		`{"arguments":"{\"bsn\":\"111222333\",\"order\":\"111222333\"}"}`:       `{"arguments":"{\"bsn\":\"[NATIONAL_ID]\",\"order\":\"111222333\"}"}`,
	} {
		if got := m.Body([]byte(text), nil); string(got) != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

// Lists of tokens or words that repeat a text go with the first match; others stay.
func TestTokensOfMaskedTextsAreLeftOut(t *testing.T) {
	m := all(t)
	for body, want := range map[string]string{
		`{"content":"a@example.com","logprobs":{"content":[{"token":"a@"},{"token":"example.com"}]},"n":1}`: `{"content":"[EMAIL]","logprobs":null,"n":1}`,
		`{"words":[{"word":"4111"},{"word":"1111"}],"text":"4111 1111 1111 1111"}`:                          `{"words":null,"text":"[CARD]"}`,
		`{"words":["a@example.com"],"logprobs":true}`:                                                       `{"words":["[EMAIL]"],"logprobs":true}`,
		`{"content":"a","logprobs":{"content":[{"token":"a"}]}}`:                                            `{"content":"a","logprobs":{"content":[{"token":"a"}]}}`,
	} {
		if got := m.Body([]byte(body), nil); string(got) != want {
			t.Errorf("%s became %s, want %s", body, got, want)
		}
	}
}

// A body that begins as JSON and is something else is read as the text that it is.
func TestTextsThatBeginAsJSON(t *testing.T) {
	m := all(t)
	for body, want := range map[string]string{
		"{'to': 'alice@example.com', 'card': 4111111111111111}": "{'to': '[EMAIL]', 'card': [CARD]}",
		`[INST] "Hi", I am alice@example.com [/INST]`:           `[INST] "Hi", I am [EMAIL] [/INST]`,
		"[4111 1111 1111 1111, 1]":                              "[[CARD], 1]",
		`{a: 030-901820-55, b: 'x\u0040example.com'}`:           `{a: [PHONE], b: '[EMAIL]'}`,
		`{"a":1}` + "\n" + `{"a":4111111111111111}`:             `{"a":1}` + "\n" + `{"a":"[CARD]"}`,
		`{"card":.4111111111111111}`:                            `{"card":.[CARD]}`,
		`[truea.4111111111111111`:                               `[truea.[CARD]`,
		`[user.4111111111111111`:                                `[user.[CARD]`,
		`[EE382200221020145685, true]`:                          `[[IBAN], true]`,
		`{"a":+49 30 901820}`:                                   `{"a":[PHONE]}`,
	} {
		if got := m.Body([]byte(body), nil); string(got) != want {
			t.Errorf("%s became %s, want %s", body, got, want)
		}
	}
}

// A text whose matches are remembered is masked as one that is read for the first time, wherever it
// stands, and for each Masker as its rules say.
func TestRememberedTexts(t *testing.T) {
	plain := all(t, &Rule{Kinds: []string{"patient"}, Patterns: []string{`PAT-\d+`}, Words: []string{"Ada Lovelace"}})
	pseudonyms, err := New([]*Rule{{Kinds: Kinds, As: Pseudonym}})
	if err != nil {
		t.Fatal(err)
	}
	keyed := func(m *Masker) *Masker {
		m, err := m.WithKey([]byte("secret"), "acme")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	one, two := keyed(plain), keyed(pseudonyms)
	filler := strings.Repeat("Please be patient. ", 12)
	examples := maps.Clone(examples)
	examples["patient"] = []string{"PAT-4711", "Ada Lovelace"}
	for kind, values := range examples {
		for _, value := range values {
			for _, text := range []string{mustJSON(value + " " + filler), mustJSON(filler + value), mustJSON(mustJSON(filler + value)), `"` + escaped(value, `\u%04x`) + `"`} {
				for _, lead := range []string{`{"content":`, `{"bsn":`, `{"a":"alice@example.com","n":1,"tax_id":`} {
					body := []byte(lead + text + "}")
					for _, m := range []*Masker{one, two, one, two} {
						counts, first := make(Counts), make(Counts)
						got, want := m.Body(body, counts), keyed(m).Body(body, first)
						if !bytes.Equal(got, want) || !maps.Equal(counts, first) || m == one && counts[kind] == 0 {
							t.Errorf("%s: %s became %s, %v, and at first %s, %v", kind, body, got, counts, want, first)
						}
					}
				}
			}
		}
	}
	numbered := func(name string) string { return `{"` + name + `":"111222333 is what I have. ` + filler + `"}` }
	for _, name := range []string{"order", "bsn", "order", "bsn"} {
		if got := one.Body([]byte(numbered(name)), nil); bytes.Contains(got, []byte("[NATIONAL_ID]")) != (name == "bsn") {
			t.Errorf("%s", got)
		}
	}
}

// What is remembered is bounded, whatever texts come.
func TestMemoryIsBounded(t *testing.T) {
	var m memory
	var id textID
	for i := range 4 * maxRemembered {
		binary.BigEndian.PutUint64(id[:], uint64(i))
		m.remember(id, make([]span, i%3))
		if _, ok := m.find(id); !ok {
			t.Fatal("a text is forgotten at once")
		}
	}
	if len(m.newer)+len(m.older) > 2*maxRemembered || m.size > maxRemembered {
		t.Errorf("%d and %d texts", len(m.newer), len(m.older))
	}
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// escaped is a text with each letter of it as an escape.
func escaped(text, format string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&b, format, unit)
	}
	return b.String()
}

func TestNumbersOfJSONAreMasked(t *testing.T) {
	got := string(all(t).Body([]byte(`{"card": 4111111111111111,"a":[-4111111111111111,0.4111111111111111,52998224725]}`), nil))
	if want := `{"card": "[CARD]","a":["[CARD]",0.4111111111111111,"[NATIONAL_ID]"]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What only looks like one of the kinds stays, byte by byte.
func TestWhatIsNoMatchStays(t *testing.T) {
	m := all(t)
	for _, text := range []string{
		"4111111111111112", "1234 5678 9012 3456", "1700000000", "1700000000000", "2024-01-02 10:15:00", "01-02-2024 10", "127.0.0.1", "v1.2.3-beta.4",
		"550e8400-e29b-41d4-a716-446655440000", "chatcmpl-123456789012345678901234", "lodash@4.17.21", "@types/node", "logo@2x.png", "a @ b.c",
		"sk-learn and sk-something-long-without-numbers", "0.1234567890123456", "3.14159265358979", "DE00 3704 0044 0532 0130 00", "12345678A",
		`{"a":"\\u00e9","embedding":[0.4111111111111111,-0.0123456789012345],"created":1700000000}`, "1,234,567,890", "10 000 000 000", "20240123 a day", "pkg@2.0.0-rc1", "user@host", "HF_HOME and hf_transfer_is_enabled_by_default",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "111222333", "toolu_01A09q90qw90lq917835lq9",
	} {
		counts := make(Counts)
		if got := m.Body([]byte(text), counts); string(got) != text || len(counts) > 0 {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func TestOwnPatternsAndWords(t *testing.T) {
	m := all(t, &Rule{Kinds: []string{"patient"}, Patterns: []string{`PAT-\d+`}, Words: []string{"Ada Lovelace", "größe"}})
	got := m.Text("PAT-12 is ADA  lovelace, not Ada Lovelaces; GRÖSSE, Größe", nil)
	if want := "[PATIENT] is [PATIENT], not Ada Lovelaces; GRÖSSE, [PATIENT]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What own patterns and words find in a number of JSON makes the whole number a label.
func TestOwnPatternsAndWordsInNumbers(t *testing.T) {
	m, err := all(t, &Rule{Kinds: []string{"account"}, Patterns: []string{`\b\d{16}\b`, `^-7e3$`}, Words: []string{"4711"}, As: Pseudonym},
		&Rule{Kinds: []string{"patient"}, Patterns: []string{`PAT-\d+`}, Words: []string{"Room 12"}, OnMatch: Refuse}).WithKey([]byte("secret"), "acme")
	if err != nil {
		t.Fatal(err)
	}
	for value, number := range map[string]string{"1234567890123456": "-1234567890123456", "4711": "4711"} {
		label := m.Text(value, nil)
		counts := make(Counts)
		body := `{"a":` + number + `,"b":[12,17.5,true,1700000000,` + number + `]}`
		if got, want := string(m.Body([]byte(body), counts)), `{"a":"`+label+`","b":[12,17.5,true,1700000000,"`+label+`"]}`; got != want || counts["account"] != 2 {
			t.Errorf("%s became %s, %v, want %s", body, got, counts, want)
		}
	}
	if got := m.Body([]byte(`[-7e3,7e3,null]`), nil); !bytes.HasPrefix(got, []byte(`["[ACCOUNT:`)) || !json.Valid(got) || !bytes.HasSuffix(got, []byte(`",7e3,null]`)) {
		t.Errorf("%s", got)
	}
	if own := m.kinds[len(Kinds)+1]; own.numeric {
		t.Error("a pattern that no number matches is tried on each")
	}
}

// The numbers of a protocol are nobody's data where the protocol has them, and there alone.
func TestNumbersOfAProtocolStay(t *testing.T) {
	m := all(t, &Rule{Kinds: []string{"pin"}, Patterns: []string{`\b\d{4}\b`}, OnMatch: Refuse})
	for _, body := range []string{
		`{"model":"m","max_tokens":1024,"seed": 4111111111111111,"messages":[]}`,
		`{"thinking":{"type":"enabled","budget_tokens":2048},"max_tokens":4096}`,
		`{"generationConfig":{"maxOutputTokens":1024,"thinkingConfig":{"thinkingBudget":2048}},"contents":[]}`,
		`{"usage":{"input_tokens":1234,"details":{"cached":[1234]}},"created_at":4111111111111111}`,
		`{"generationConfig":{"responseSchema":{"type":"STRING"},"maxOutputTokens":1234}}`,
		`{"content":[{"words":[{"word":"a","start":1234}]}],"eval_count":1234}`,
	} {
		if kind, got := m.Refused([]byte(body)), m.Body([]byte(body), nil); kind != "" || string(got) != body {
			t.Errorf("%s is refused for its %q, and becomes %s", body, kind, got)
		}
	}
	for _, body := range []string{
		`{"pin":1234}`, `{"max_tokens":[1234]}`, `{"max_tokens":9,"a":1234}`, `[{"max_tokens":1234}]`, `{"usage":{},"a":[1234]}`, `{"usage":[1234]}`,
		`{"messages":[{"content":[{"type":"tool_use","input":{"max_tokens":1234}}]}]}`, `{"metadata":{"usage":{"n":1234}}}`,
		`{"a":"seed","b":1234}`, `{"seed":"1234"}`, `{"tools":[{"seed":1234}]}`,
		`{"generationConfig":{"responseSchema":{"properties":{"a":{"enum":[1234]}}}}}`,
	} {
		if kind, got := m.Refused([]byte(body)), m.Body([]byte(body), nil); kind != "pin" || bytes.Contains(got, []byte("1234")) {
			t.Errorf("%s is refused for its %q, and becomes %s", body, kind, got)
		}
	}
}

// If a built-in kind and one of your own find the same, the built-in one has it: a name keeps its pseudonym.
func TestTheBuiltinKindHasWhatTwoFind(t *testing.T) {
	m, err := all(t, &Rule{Kinds: []string{"staff"}, Patterns: []string{`\S+@example\.com`, `\d{16}`}}).WithKey([]byte("secret"), "acme")
	if err != nil {
		t.Fatal(err)
	}
	for name, label := range map[string]string{"ada@example.com": "[EMAIL:", "ada%40example.com": "[EMAIL:", "4111111111111111": "[CARD:"} {
		if got := m.Name(name, nil); !strings.HasPrefix(got, label) {
			t.Errorf("%s became %s", name, got)
		}
	}
}

func TestPseudonymsAreStableWithinAnOrganisation(t *testing.T) {
	rule := []*Rule{{Kinds: []string{"email", "phone"}, As: Pseudonym}}
	plain, err := New(rule)
	if err != nil {
		t.Fatal(err)
	}
	of := func(org string) *Masker {
		m, err := plain.WithKey([]byte("secret"), org)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	a, b := of("a"), of("b")
	first := a.Text("Alice@Example.com", nil)
	if len(first) != len("[EMAIL:q7w2mzkd4xa5]") || a.Text("alice@example.com", nil) != first || a.Text("bob@example.com", nil) == first {
		t.Errorf("%s", first)
	}
	if escapedBody := a.Body([]byte(`"alice\u0040example.com"`), nil); string(escapedBody) != `"`+first+`"` {
		t.Errorf("%s, want %s", escapedBody, first)
	}
	if b.Text("alice@example.com", nil) == first {
		t.Error("two organisations have the same pseudonym")
	}
	if again := a.Text(first, nil); again != first {
		t.Errorf("masked twice: %s", again)
	}
	if got := plain.Text("alice@example.com", nil); got != "[EMAIL]" {
		t.Errorf("without a key: %s", got)
	}
	labels, err := Join(a, all(t)).WithKey([]byte("secret"), "a")
	if err != nil {
		t.Fatal(err)
	}
	if got := labels.Text("alice@example.com", nil); got != "[EMAIL]" {
		t.Errorf("with plain labels: %s", got)
	}
	if got := labels.Name("alice@example.com", nil); got != first {
		t.Errorf("a name with plain labels: %s, want %s", got, first)
	}
}

func TestTheStricterRuleWins(t *testing.T) {
	m, err := New([]*Rule{{Kinds: []string{"email"}, As: Pseudonym}})
	if err != nil {
		t.Fatal(err)
	}
	strict, err := New([]*Rule{{Kinds: []string{"email"}, OnMatch: Refuse}})
	if err != nil {
		t.Fatal(err)
	}
	for _, joined := range []*Masker{Join(m, nil, strict), Join(strict, m)} {
		if joined.Text("a@example.com", nil) != "[EMAIL]" || joined.Refused([]byte(`{"a":"b\u0040example.com"}`)) != "email" {
			t.Error("the rule that tells less does not win")
		}
	}
	if kind := m.Refused([]byte("alice@example.com")); kind != "" {
		t.Errorf("%s is refused", kind)
	}
}

func TestMistakesInRules(t *testing.T) {
	for want, rule := range map[string]*Rule{
		"the kinds are":               {Kinds: []string{"emial"}},
		"name what to mask":           {},
		"as \"x\"":                    {Kinds: []string{"email"}, As: "x"},
		"on_match \"x\"":              {Kinds: []string{"email"}, OnMatch: "x"},
		"missing closing )":           {Kinds: []string{"own"}, Patterns: []string{"(a"}},
		"matches the empty text":      {Kinds: []string{"own"}, Patterns: []string{"a*"}},
		"one name of their own":       {Kinds: []string{"email"}, Patterns: []string{"a"}},
		"lower-case letters":          {Kinds: []string{"Own"}, Words: []string{"a"}},
		"begins with a letter or a d": {Kinds: []string{"own"}, Words: []string{"- a"}},
	} {
		if _, err := New([]*Rule{rule}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Texts that begin a match at each byte, and complete none, take a time in proportion to them.
func TestBeginningsAloneAreCheap(t *testing.T) {
	m := all(t)
	for _, part := range []string{"sk-", "eyJ-", "eyJ1-", "hf_A-", "m4", "%20", "a.%40.", "@xn--1", "0 ", "-----BEGIN ", "+1-"} {
		text := strings.Repeat(part, 100_000)
		if got := m.Text(text, nil); len(got) > len(text) {
			t.Errorf("%s: %d bytes", part, len(got))
		}
	}
}

func FuzzBody(f *testing.F) {
	for _, values := range examples {
		for _, value := range values {
			f.Add(mustJSON(map[string]any{"a": value, "logprobs": []string{value}}))
		}
	}
	m := all(f, &Rule{Kinds: []string{"own"}, Patterns: []string{"x+"}, Words: []string{"é y"}})
	f.Fuzz(func(t *testing.T, body string) {
		counts := make(Counts)
		got := m.Body([]byte(body), counts)
		if isJSON([]byte(body)) && json.Valid([]byte(body)) && !json.Valid(got) {
			t.Errorf("no longer JSON: %q became %q", body, got)
		}
		if len(counts) == 0 && string(got) != body {
			t.Errorf("%q became %q without a match", body, got)
		}
	})
}

func BenchmarkBody(b *testing.B) {
	m := all(b)
	message := mustJSON(map[string]string{"role": "user", "content": strings.Repeat("The quick brown fox jumps over 12 lazy dogs; see https://example.com/a/b?c=1.\n", 12)})
	body := []byte(`{"messages":[` + strings.Repeat(message+",", 99) + message + `]}`)
	vectors := []byte(`{"embedding":[` + strings.Repeat("-0.0123456789,", 8000) + `1]}`)
	var small []byte
	for words := prose.New(1); len(small) < 100_000; {
		small = append(small, mustJSON(map[string]any{"messages": []string{words.Text(200), words.Text(1500)}, "temperature": 0.7})...)
	}
	for name, body := range map[string][]byte{"text": body, "vectors": vectors, "prose": small, "matches": bytes.ReplaceAll(body, []byte("lazy"), []byte("a@b.com"))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				m.Body(body, nil)
			}
		})
	}
}

// BenchmarkConversations masks the turns of agents, which repeat what was said before.
func BenchmarkConversations(b *testing.B) {
	m, err := all(b).WithKey([]byte("secret"), "acme")
	if err != nil {
		b.Fatal(err)
	}
	turns := agents.Default.Generate()
	slices.SortStableFunc(turns, func(a, b agents.Turn) int { return cmp.Compare(a.Conversation, b.Conversation) })
	size, i := 0, 0
	for b.Loop() {
		turn := turns[i%len(turns)]
		i++
		size += len(turn.Request) + len(turn.Answer)
		m.Body(turn.Request, nil)
		m.Body(turn.Answer, nil)
	}
	b.SetBytes(int64(size / i))
}
