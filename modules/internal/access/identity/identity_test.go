package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// server is an issuer that signs by keys of its own.
type server struct {
	oidctest.Server
	url     string
	key     *ecdsa.PrivateKey
	asked   atomic.Int64
	failing atomic.Bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	if s.failing.Load() {
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	s.Server.ServeHTTP(w, r)
}

// RoundTrip implements http.RoundTripper without a network, which synctest needs.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{url: "https://login.example.com"}
	s.SetIssuer(s.url)
	s.rotate(t, "one")
	return s
}

// issuer is asked without a network.
func (s *server) issuer(audiences ...string) *Issuer {
	i := NewIssuer(s.url, audiences)
	i.source.through = s
	return i
}

// rotate gives the issuer a key in place of those that it has.
func (s *server) rotate(t *testing.T, id string) {
	t.Helper()
	var err error
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	s.PublicKeys = []oidctest.PublicKey{{PublicKey: s.key.Public(), KeyID: id, Algorithm: oidc.ES256}}
}

// token is one of the issuer with some claims in place of others, or without those that are nil.
func (s *server) token(claims map[string]any) string {
	all := map[string]any{"iss": s.url, "sub": "ada", "aud": "weir", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	text, _ := json.Marshal(all) // of texts and numbers
	return s.signed(string(text))
}

func (s *server) signed(claims string) string {
	return oidctest.SignIDToken(s.key, s.PublicKeys[0].KeyID, oidc.ES256, claims)
}

// within is a token of s that says it is of another issuer, and has the key of s in its
// header.
func (s *server) within(of *server) string {
	point, _ := s.key.PublicKey.Bytes() // of a curve that is known
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"`+encode(point[1:33])+`","y":"`+encode(point[33:])+`"}}`)) +
		"." + encode([]byte(`{"iss":"`+of.url+`","sub":"ada","aud":"weir","exp":9999999999}`))
	sum := sha256.Sum256([]byte(text))
	x, y, _ := ecdsa.Sign(rand.Reader, s.key, sum[:])
	signature := make([]byte, 64)
	x.FillBytes(signature[:32])
	y.FillBytes(signature[32:])
	return text + "." + encode(signature)
}

func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		other := newServer(t)
		good := s.token(nil)
		parts := strings.Split(good, ".")
		encode := base64.RawURLEncoding.EncodeToString
		now := time.Now().Unix()
		for name, c := range map[string]struct{ token, problem string }{
			"good":                  {good, ""},
			"for several":           {s.token(map[string]any{"aud": []string{"other", "weir-dashboard"}}), ""},
			"ended just now":        {s.token(map[string]any{"exp": now - 30}), ""},
			"ended":                 {s.token(map[string]any{"exp": now - 90}), "expired"},
			"without an end":        {s.token(map[string]any{"exp": nil}), "expired"},
			"not begun":             {s.token(map[string]any{"nbf": now + 3600}), "not before"},
			"for others":            {s.token(map[string]any{"aud": "other"}), "not for weir"},
			"for nobody":            {s.token(map[string]any{"aud": nil}), "not for weir"},
			"of another issuer":     {s.token(map[string]any{"iss": "https://other.example.com"}), "different provider"},
			"of nobody":             {s.token(map[string]any{"sub": ""}), "no subject"},
			"by another key":        {other.token(nil), "verify signature"},
			"not signed":            {encode([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".", "malformed"},
			"by a shared secret":    {encode([]byte(`{"alg":"HS256","kid":"one"}`)) + "." + parts[1] + "." + parts[2], "malformed"},
			"with other claims":     {parts[0] + "." + encode([]byte(`{"iss":"`+s.url+`","sub":"root","aud":"weir","exp":9999999999}`)) + "." + parts[2], "verify signature"},
			"with other algorithm":  {encode([]byte(`{"alg":"ES384","kid":"one"}`)) + "." + parts[1] + "." + parts[2], "verify signature"},
			"with a key of its own": {encode([]byte(`{"alg":"ES256","kid":"one","jku":"https://evil.example.com/keys"}`)) + "." + parts[1] + "." + parts[2], "verify signature"},
			"cut":                   {good[:len(good)-9], "malformed"},
			"for two, one unseen":   {s.signed(`{"iss":"` + s.url + `","sub":"ada","aud":"other","AUD":"weir","exp":9999999999}`), "not for weir"},
			"a claim twice":         {s.signed(`{"iss":"` + s.url + `","sub":"ada","aud":"weir","groups":["admin"],"groups":[],"exp":9999999999}`), "duplicate key"},
			"a slash at the end":    {s.token(map[string]any{"iss": s.url + "/"}), "different provider"},
			"unknown key":           {encode([]byte(`{"alg":"ES256","kid":"../../one"}`)) + "." + parts[1] + "." + parts[2], "verify signature"},
			"a key within":          {other.within(s), "verify signature"},
			"what is critical":      {encode([]byte(`{"alg":"ES256","kid":"one","crit":["exp"],"exp":1}`)) + "." + parts[1] + "." + parts[2], "verify"},
		} {
			claims, err := s.issuer("weir", "weir-dashboard").Verify(t.Context(), c.token)
			if c.problem == "" {
				if err != nil || claims.Issuer != s.url || claims.Subject != "ada" {
					t.Errorf("%s: %+v, %v", name, claims, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), parts[2]) {
				t.Errorf("%s: %+v, %v", name, claims, err)
			}
		}
	})
}

// A token is verified once a minute, and ends when it says so.
func TestRememberedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		issuer := s.issuer("weir")
		short := s.token(map[string]any{"exp": time.Now().Add(10 * time.Second).Unix()})
		for range 3 {
			if _, err := issuer.Verify(t.Context(), short); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.asked.Load(); n != 2 {
			t.Errorf("the issuer was asked %d times", n)
		}
		time.Sleep(Leeway + 11*time.Second)
		if _, err := issuer.Verify(t.Context(), short); err == nil {
			t.Error("a token outlives its end")
		}
	})
}

// Tokens of new keys are accepted, those of withdrawn keys refused, both within a minute,
// and tokens of unknown keys do not make Weir ask again and again.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		issuer := s.issuer("weir")
		old := s.token(nil)
		if _, err := issuer.Verify(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		s.rotate(t, "two")
		for range 100 {
			_, _ = issuer.Verify(t.Context(), newServer(t).token(map[string]any{"jti": rand.Text()}))
		}
		if n := s.asked.Load(); n > 3 {
			t.Errorf("the issuer was asked %d times", n)
		}
		time.Sleep(askAgain)
		if _, err := issuer.Verify(t.Context(), s.token(nil)); err != nil {
			t.Errorf("a token of the new key: %v", err)
		}
		time.Sleep(verifiedTTL + time.Second)
		if _, err := issuer.Verify(t.Context(), old); err == nil {
			t.Error("a token of the withdrawn key is accepted")
		}
	})
}

// An issuer that is away refuses no token for good, and those it has signed go on.
func TestIssuerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.failing.Store(true)
		issuer := s.issuer("weir")
		for range 2 {
			if _, err := issuer.Verify(t.Context(), s.token(nil)); !errors.Is(err, ErrUnavailable) {
				t.Fatalf("while the issuer is away: %v", err)
			}
		}
		s.failing.Store(false)
		time.Sleep(askAgain)
		if _, err := issuer.Verify(t.Context(), s.token(nil)); err != nil {
			t.Fatalf("when it is back: %v", err)
		}
		s.failing.Store(true)
		time.Sleep(2 * verifiedTTL)
		if _, err := issuer.Verify(t.Context(), s.token(nil)); err != nil {
			t.Errorf("by a key that is known: %v", err)
		}
	})
}

func TestIssued(t *testing.T) {
	s := newServer(t)
	issuer := s.issuer("weir")
	good := s.token(nil)
	for secret, want := range map[string]bool{
		good: true, "": false, "weir_key": false, "eyJ..": false, "eyJ.a.b.c": false,
		s.token(map[string]any{"iss": "https://other.example.com"}): false, good + strings.Repeat("x", maxToken): false,
	} {
		if got := issuer.Issued(secret); got != want {
			t.Errorf("%.40s is of the issuer: %t", secret, got)
		}
	}
}

func TestValues(t *testing.T) {
	for verified, want := range map[string][2]bool{ // of an issuer that is not trusted, and of one that is
		`,"email_verified":true`: {true, true}, `,"email_verified":"true"`: {true, true}, ``: {false, true}, `,"email_verified":null`: {false, true},
		`,"email_verified":false`: {}, `,"email_verified":"false"`: {}, `,"email_verified":[true,false]`: {},
	} {
		for i, trust := range []bool{false, true} {
			c := Claims{all: `{"email":"ada@acme.com"` + verified + `}`, TrustEmail: trust}
			if counts := c.Values("email") != nil; counts != want[i] || counts != (c.VerifiedEmail() != "") {
				t.Errorf("the email counts %t with %s, trusted %t", counts, verified, trust)
			}
		}
	}
	c := Claims{all: `{"email":"ada@acme.com","email_verified":true,"a":"x","list":["x",1,null,{"b":1},["y"],true,""],"https://acme.com/team":"blue","realm_access":{"roles":["admin","user"]},"a.b":"exact","a*":"star","null":null}`}
	for name, want := range map[string][]string{
		"email": {"ada@acme.com"}, "a": {"x"}, "list": {"x", "1", "true"}, "https://acme.com/team": {"blue"}, "realm_access.roles": {"admin", "user"},
		"realm_access": nil, "a.b": {"exact"}, "none": nil, "null": nil, "*": nil, "#": nil, "realm_access.roles.#": nil, "a*": {"star"}, "": nil, "@this": nil, "realm*.roles": nil,
	} {
		if got := c.Values(name); !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
