package llmapp

import (
	"testing"

	"github.com/weirhq/weir/modules/internal/identity"
	"github.com/weirhq/weir/storage"
)

func TestRecordsSayWhatVerifiedTheCaller(t *testing.T) {
	const issuer = "https://login.example.com"
	app := startKeyed(t, t.TempDir())
	token, err := (&Identity{org: DefaultName, Scopes: []string{ScopeLog}}).key(t.Context(), app, identity.Claims{Issuer: issuer, Subject: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	for want, key := range map[string]*Key{issuer: token, storage.ByKey: {org: DefaultName}} {
		r := new(storage.Record)
		if key.Stamp(r); r.VerifiedBy != want {
			t.Errorf("verified by %q, want %q", r.VerifiedBy, want)
		}
	}
}
