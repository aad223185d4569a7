package directive

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// everything has an option of each type.
type everything struct {
	text, choice  string
	texts, sides  []string
	flag, switche bool
	wait          caddy.Duration
	number        *int
	size          Size
}

func (e *everything) parse(block string) error {
	return Options{
		"text": Text(&e.text), "texts": Texts(&e.texts), "choice": Choice(&e.choice, "pass"), "sides": Choices(&e.sides, "left", "right"),
		"flag": Flag(&e.flag), "switch": Switch(&e.switche), "wait": Duration(&e.wait), "number": Number(&e.number), "size": Bytes(&e.size),
	}.Directive(caddyfile.NewTestDispenser("it {\n" + block + "\n}"))
}

func TestOptions(t *testing.T) {
	var e everything
	err := e.parse("text a\ntexts a b\ntexts c\nchoice pass\nsides left\nsides right\nflag\nswitch on\nwait 2d\nnumber 0\nsize 2MiB")
	if err != nil || e.text != "a" || len(e.texts) != 3 || e.choice != "pass" || len(e.sides) != 2 || !e.flag || !e.switche ||
		e.wait != caddy.Duration(48*3600e9) || e.number == nil || *e.number != 0 || e.size != 2<<20 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestMalformedOptions(t *testing.T) {
	for block, want := range map[string]string{
		"text":           "text takes one value, not 0; put a value with blanks in quotes",
		"text a b":       "text takes one value, not 2; put a value with blanks in quotes",
		`text ""`:        "text takes one value, not an empty one",
		"text a\ntext b": "text is given twice",
		"texts":          "texts takes one value or more",
		"choice all":     "choice takes pass, not 'all'",
		"sides":          "sides takes left or right",
		"sides up":       "sides takes left or right, not 'up'",
		"flag yes":       "flag takes no value, not even 'yes'",
		"switch":         "switch takes on or off",
		"switch true":    "switch takes on or off, not 'true'",
		"wait 90 days":   "wait takes a duration such as 30s, 12h or 90d, not '90 days'",
		"wait -1s":       "not '-1s'",
		"wait 0":         "not '0'",
		"number -1":      "number takes a whole number of 0 or more, not '-1'",
		"size 0":         "size takes a size such as 512KiB or 8MiB, of 1 byte or more, not '0'",
		"size much":      "not 'much'",
		"size 2TiB":      "not '2TiB'",
		"size 1\nsize 1": "size is given twice",
		"sise 1":         "it has no option 'sise'; did you mean size?",
		"bananas":        "it has no option 'bananas'; its options are choice, flag, number, sides, size, switch, text, texts, wait",
	} {
		var e everything
		if err := e.parse(block); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", block, err, want)
		}
	}
}

// A limit of 0 bytes is an error in JSON, as it is in a Caddyfile, and no default.
func TestSizeInJSON(t *testing.T) {
	for text, ok := range map[string]bool{`{}`: true, `{"max":1}`: true, `{"max":0}`: false, `{"max":-1}`: false, `{"max":2000000000000}`: false, `{"max":"1"}`: false} {
		var config struct {
			Max Size `json:"max"`
		}
		if err := json.Unmarshal([]byte(text), &config); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
