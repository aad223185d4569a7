package access

import (
	"testing"

	"github.com/weirhq/weir/modules/internal/access/identity"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/storage"
)

func TestRecordsSayWhatVerifiedTheCaller(t *testing.T) {
	const issuer = "https://login.example.com"
	keys, _ := start(t, t.TempDir())
	token, err := (&Identity{org: stores.DefaultName, Scopes: []string{ScopeLog}}).key(t.Context(), keys, identity.Claims{Issuer: issuer, Subject: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	for want, key := range map[string]*Key{issuer: token, storage.ByKey: {org: stores.DefaultName}} {
		r := new(storage.Record)
		if key.Stamp(r); r.VerifiedBy != want {
			t.Errorf("verified by %q, want %q", r.VerifiedBy, want)
		}
	}
}
