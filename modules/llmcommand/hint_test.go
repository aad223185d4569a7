package llmcommand

import (
	"bytes"
	"testing"

	"github.com/weirhq/weir/storage"
)

func TestHints(t *testing.T) {
	a := &api{}
	a.add(&storage.Record{ID: id(1), CreatedAt: 1, UserID: "ada", Properties: map[string]string{"Feature": "chat", "Env": "prod"}})
	address := a.serve(t)
	for term, want := range map[string]string{
		"property.feature=chat":  "Hint: recent requests have the property Feature, not feature; letter case matters.\n",
		"property.Featur=chat":   "Hint: recent requests have the property Feature, not Featur; letter case matters.\n",
		"property.Feature=sales": "",
		"property.Other=x":       "",
		"user=ada,bob":           "Hint: \"ada,bob\" is one value; for several write <field>=ada or <field>=bob.\n",
		"user=bob":               "",
		"user=ada":               "",
	} {
		stderr, err := run(t.Context(), queryCommand, new(bytes.Buffer), "--address", address, term)
		if err != nil || stderr != want {
			t.Errorf("%s: stderr %q, %v, want %q", term, stderr, err, want)
		}
	}
}
