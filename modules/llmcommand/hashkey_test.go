package llmcommand

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestHashKey(t *testing.T) {
	for input, want := range map[string]string{
		"secret\n":       "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n",
		"secret\r\nmore": "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n",
		"secret":         "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n",
		"":               "",
		"\n":             "",
	} {
		var out bytes.Buffer
		_, err := run(t.Context(), func(cmd *cobra.Command) {
			hashKeyCommand(cmd)
			cmd.SetIn(strings.NewReader(input))
		}, &out)
		if out.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", input, &out, err, want)
		}
	}
}

// A key that is given as an argument stays out of the error, which ends in logs.
func TestHashKeyDoesNotRepeatItsArguments(t *testing.T) {
	for _, argument := range []string{"sk-canary", "-sk-canary", "--sk-canary", "--sk=canary"} {
		var out bytes.Buffer
		stderr, err := run(t.Context(), hashKeyCommand, &out, argument)
		if err == nil || strings.Contains(err.Error()+stderr+out.String(), "canary") {
			t.Errorf("%s: %v, %q, %q", argument, err, stderr, &out)
		}
	}
}
