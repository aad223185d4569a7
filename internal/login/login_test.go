package login

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/zalando/go-keyring"
)

// issuer logs ada in at once, by a browser or a device code, and takes each refresh token once. It
// is its own gateway.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey

	mu        sync.Mutex
	client    Client
	resource  string            // that the metadata name, "" for the right one
	addresses map[string]string // of endpoints, in place of the right ones
	challenge string
	device    int    // how often the device code was asked for
	refresh   string // the refresh token that is valid
	renewed   int
	fails     string // the error of the next token request
	strict    bool   // no refresh token without consent
	prompt    string // of the last login by a browser
	life      time.Duration
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "AppData", "XDG_CONFIG_HOME"} {
		t.Setenv(name, dir)
	}
	keyring.MockInitWithError(errors.New("no keychain"))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, life: time.Hour}
	mux := http.NewServeMux()
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	i.client = Client{Issuer: i.URL, ID: "weir-cli"}
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET "+resourcePath, func(w http.ResponseWriter, _ *http.Request) {
		resource := i.resource
		if resource == "" {
			resource = i.URL
		}
		answer(w, 200, map[string]any{"resource": resource, "weir_logins": []Client{i.client}})
	})
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		metadata := map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"device_authorization_endpoint": i.URL + "/device", "revocation_endpoint": i.URL + "/revoke", "scopes_supported": []string{"openid", "offline_access"},
		}
		for name, address := range i.addresses {
			metadata[name] = address
		}
		answer(w, 200, metadata)
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("client_id") != "weir-cli" || q.Get("scope") != "openid profile email offline_access" || q.Get("code_challenge_method") != "S256" || q.Get("audience") != i.client.Audience {
			t.Errorf("%v", q)
		}
		i.challenge, i.prompt = q.Get("code_challenge"), q.Get("prompt")
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"code-1"}, "state": {q.Get("state")}, "iss": {i.URL}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"device_code": "device-1", "user_code": "WDJB", "verification_uri": i.URL + "/enter", "expires_in": 60, "interval": 1})
	})
	mux.HandleFunc("POST /revoke", func(_ http.ResponseWriter, r *http.Request) {
		if r.FormValue("token") == i.refresh {
			i.refresh = ""
		}
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		refused := i.fails
		switch r.FormValue("grant_type") {
		case "authorization_code":
			sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
			if r.FormValue("code") != "code-1" || base64.RawURLEncoding.EncodeToString(sum[:]) != i.challenge {
				refused = "invalid_grant"
			}
		case "refresh_token":
			if i.renewed++; r.FormValue("refresh_token") != i.refresh {
				refused = "invalid_grant"
			}
		default:
			if r.FormValue("device_code") != "device-1" {
				refused = "invalid_grant"
			}
			i.device++
		}
		switch refused {
		case "":
		case "away":
			w.WriteHeader(http.StatusBadGateway)
			return
		default:
			answer(w, 400, map[string]string{"error": refused})
			return
		}
		if i.refresh = rand.Text(); i.strict && i.prompt != "consent" {
			i.refresh = ""
		}
		answer(w, 200, map[string]any{
			"access_token": i.token(map[string]any{"aud": "weir"}), "id_token": i.token(nil), "refresh_token": i.refresh, "token_type": "Bearer", "expires_in": 5,
		})
	})
	return i
}

func (i *issuer) token(claims map[string]any) string {
	now := time.Now().Add(-time.Hour) // by a clock that is behind
	all := map[string]any{"iss": i.URL, "sub": "ada", "aud": "weir-cli", "iat": now.Unix(), "exp": now.Add(i.life).Unix(), "jti": rand.Text()}
	maps.Copy(all, claims)
	text, _ := json.Marshal(all) // of texts and numbers
	return oidctest.SignIDToken(i.key, "one", oidc.ES256, string(text))
}

func (i *issuer) flow(t *testing.T) *Flow {
	t.Helper()
	clients, err := Clients(t.Context(), i.Client(), i.URL)
	if err != nil || len(clients) != 1 {
		t.Fatal(clients, err)
	}
	flow, err := Discover(t.Context(), i.Client(), clients[0])
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

// browse is a browser whose user is logged in at the issuer.
func (i *issuer) browse(t *testing.T) func(string) {
	return func(address string) {
		go func() {
			response, err := http.Get(address)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if text, _ := io.ReadAll(response.Body); !strings.Contains(string(text), "You are logged in.") {
				t.Errorf("%s", text)
			}
		}()
	}
}

func audience(token string) string {
	claims, _ := base64.RawURLEncoding.DecodeString(strings.Split(token+"..", ".")[1])
	var c struct{ Aud string }
	_ = json.Unmarshal(claims, &c)
	return c.Aud
}

// People log in by a browser or a device code, and the token is the one that the gateway takes.
func TestLogin(t *testing.T) {
	i := newIssuer(t)
	l, err := i.flow(t).Browser(t.Context(), i.browse(t))
	if err != nil || audience(l.Token) != "weir-cli" || l.Secret != i.refresh || time.Until(l.EndsAt) < 59*time.Minute {
		t.Errorf("%+v, %v", l, err)
	}
	if i.prompt != "" {
		t.Errorf("a login without need asks for %q", i.prompt)
	}
	i.strict = true
	if l, err = i.flow(t).Browser(t.Context(), i.browse(t)); err != nil || l.Secret == "" || l.Secret != i.refresh {
		t.Errorf("without consent: %+v, %v", l, err)
	}
	i.strict = false
	i.client.Audience = "weir"
	if l, err = i.flow(t).Browser(t.Context(), i.browse(t)); err != nil || audience(l.Token) != "weir" {
		t.Errorf("%+v, %v", l, err)
	}
	code := ""
	l, err = i.flow(t).Device(t.Context(), func(address, user string) { code = address + " " + user })
	if err != nil || audience(l.Token) != "weir" || code != i.URL+"/enter WDJB" || i.device != 1 {
		t.Errorf("%+v, %v, %s", l, err, code)
	}
	i.fails = "access_denied"
	if _, err := i.flow(t).Browser(t.Context(), i.browse(t)); err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Error(err)
	}
	i.resource = "https://other.example.com"
	if _, err := Clients(t.Context(), i.Client(), i.URL); err == nil || !strings.Contains(err.Error(), "trusted_proxies") {
		t.Error(err)
	}
	i.resource, i.client.Issuer = "", "http://login.example.com"
	if _, err := Clients(t.Context(), i.Client(), i.URL); err == nil || !strings.Contains(err.Error(), "expected https://") {
		t.Error(err)
	}
}

// An issuer cannot have this machine open a file or start a program, or send codes and tokens where others read
// them.
func TestHostileIssuer(t *testing.T) {
	i := newIssuer(t)
	for _, name := range []string{"authorization_endpoint", "token_endpoint", "device_authorization_endpoint", "revocation_endpoint"} {
		for _, address := range []string{"file:///etc/passwd", "ms-msdt:/id", "http://login.example.com/t", "-e"} {
			i.addresses = map[string]string{name: address}
			if _, err := Discover(t.Context(), i.Client(), i.client); err == nil || !strings.Contains(err.Error(), "expected https://") {
				t.Errorf("%s %s: %v", name, address, err)
			}
		}
	}
}

// old makes the kept token one of which so much is left.
func (f File) old(t *testing.T, address string, left time.Duration) {
	t.Helper()
	l, err := f.Find(address)
	if err == nil {
		l.RenewAt, l.EndsAt = time.Now().Add(-time.Second), time.Now().Add(left)
		err = f.Keep(t.Context(), l)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A token is renewed when half of its life is over, once for all processes, with the refresh token
// of the last time. While the issuer is away, the token is used to its end.
func TestFresh(t *testing.T) {
	for _, keychain := range []bool{false, true} {
		i := newIssuer(t)
		if keychain {
			keyring.MockInit()
		}
		f, err := Open()
		if err != nil {
			t.Fatal(err)
		}
		fresh := func() (string, error) { return f.Fresh(t.Context(), i.URL, i.Client()) }
		if _, err := fresh(); err == nil || err.Error() != fmt.Sprintf("you are not logged in at %s: run `weir login %[1]s`", i.URL) {
			t.Error(err)
		}
		l, err := i.flow(t).Browser(t.Context(), i.browse(t))
		if err != nil {
			t.Fatal(err)
		}
		l.Address = i.URL
		if err := f.Keep(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(f.path)
		if info, _ := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(text), i.refresh) == keychain {
			t.Errorf("%v, %v, %s", info.Mode(), err, text)
		}
		if token, err := fresh(); err != nil || token != l.Token || i.renewed != 0 {
			t.Error(token, err)
		}

		f.old(t, i.URL, time.Minute)
		tokens := make([]string, 8)
		var group sync.WaitGroup
		for n := range tokens {
			group.Go(func() {
				var err error
				if tokens[n], err = fresh(); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for _, token := range tokens {
			if token != tokens[0] || token == l.Token || i.renewed != 1 {
				t.Errorf("renewed %d times: %s", i.renewed, token)
			}
		}

		f.old(t, i.URL, time.Minute)
		i.fails = "away"
		if token, err := fresh(); err != nil || token != tokens[0] {
			t.Error(token, err)
		}
		f.old(t, i.URL, -time.Minute)
		if _, err := fresh(); err == nil || !strings.Contains(err.Error(), "gives no new token now") {
			t.Error(err)
		}
		i.fails = ""
		if token, err := fresh(); err != nil || token == tokens[0] {
			t.Error(token, err)
		}
		kept, err := f.Find(i.URL)
		if err != nil {
			t.Fatal(err)
		}
		f.old(t, i.URL, time.Minute)
		unlock, err := f.lock(t.Context()) // by a process that waits for the issuer
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if token, err := f.Fresh(short, i.URL, i.Client()); err != nil || token != kept.Token {
			t.Error(token, err)
		}
		cancel()
		unlock()
		if keychain { // one that is locked keeps the login, and its secret
			secret, err := kept.secret()
			if err != nil {
				t.Fatal(err)
			}
			keyring.MockInitWithError(errors.New("locked"))
			if _, err := f.Forget(t.Context(), kept, i.Client()); err == nil || i.refresh == "" {
				t.Error("logged out with a locked keychain", err)
			}
			if _, err := f.Find(i.URL); err != nil {
				t.Error(err)
			}
			keyring.MockInit()
			if err := keyring.Set(keychainService, kept.Address, secret); err != nil {
				t.Fatal(err)
			}
		}
		if revoked, err := f.Forget(t.Context(), kept, i.Client()); err != nil || !revoked || i.refresh != "" {
			t.Error(revoked, err)
		}
		if err := f.Keep(t.Context(), kept); err != nil { // a copy of it
			t.Fatal(err)
		}
		f.old(t, i.URL, -time.Minute)
		if _, err := fresh(); err == nil || !strings.HasPrefix(err.Error(), "your login at "+i.URL+" has ended") {
			t.Error(err)
		}
	}
}
