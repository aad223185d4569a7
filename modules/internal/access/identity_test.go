package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

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

// Calls are those of the same key, or of the same user of the same issuer. A user whom a call of a
// key names is nobody's, also of a user whom Caddy has authenticated, who has turns of their own.
func TestWhoMadeACall(t *testing.T) {
	keys, _ := start(t, t.TempDir())
	token := (&Key{issuer: "https://one.example.com", user: "ada"}).hashed([32]byte{1})
	trusted := keys.KeyOf(stores.DefaultName, "ada")
	for _, test := range []struct {
		of   storage.Record
		want bool
	}{
		{storage.Record{UserID: "ada", AuthHash: "other", VerifiedBy: "https://one.example.com"}, true},
		{storage.Record{UserID: "bob", AuthHash: token.Hash(), VerifiedBy: storage.ByKey}, true},
		{storage.Record{UserID: "ada", AuthHash: "other", VerifiedBy: "https://two.example.com"}, false},
		{storage.Record{UserID: "ada", AuthHash: "other", VerifiedBy: storage.ByKey}, false},
		{storage.Record{UserID: "ada"}, false},
	} {
		if token.Made(&test.of) != test.want || trusted.Made(&test.of) {
			t.Errorf("%+v: %v, %v", test.of, token.Made(&test.of), trusted.Made(&test.of))
		}
	}
	for _, other := range []*Key{keys.KeyOf(stores.DefaultName, "bob"), keys.KeyOf("acme", "ada")} {
		if other.Hash() == trusted.Hash() {
			t.Errorf("%s of %s shares turns with another", other.User(), other.Org())
		}
	}
	if _, ok := keys.KeyByHash(trusted.Hash()); ok {
		t.Error("the hash of a user opens the store")
	}
}

// Whoever holds a connection open with a token is refused when the token has ended.
func TestTokensEnd(t *testing.T) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: signer.Public(), KeyID: "one", Algorithm: oidc.ES256}}}
	server := httptest.NewServer(issuer)
	defer server.Close()
	issuer.SetIssuer(server.URL)
	keys, _ := start(t, t.TempDir())
	if err := keys.AddIdentity(&Identity{Issuer: server.URL, Audiences: []string{"weir"}, Scopes: []string{ScopeGateway}}, stores.DefaultName); err != nil {
		t.Fatal(err)
	}
	expiry := time.Now().Add(time.Hour).Truncate(time.Second)
	token, err := keys.Authenticate(t.Context(), oidctest.SignIDToken(signer, "one", oidc.ES256, fmt.Sprintf(`{"iss":%q,"sub":"ada","aud":"weir","exp":%d}`, server.URL, expiry.Unix())))
	if err != nil || !token.endsAt.Equal(expiry.Add(identity.Leeway)) {
		t.Fatalf("%+v, %v", token, err)
	}
	if err := keys.Recheck(t.Context(), token); err != nil {
		t.Error(err)
	}
	token.endsAt = time.Now().Add(-time.Second)
	if err := keys.Recheck(t.Context(), token); !errors.Is(err, ErrUnknownKey) {
		t.Error(err)
	}
	if err := keys.Recheck(t.Context(), new(Key)); err != nil {
		t.Error("a key of the configuration", err)
	}
}
