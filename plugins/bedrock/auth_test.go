package bedrock

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/translate"
)

// signed is the request without a key.
func signed(t *testing.T, b *Provider) (*http.Request, error) {
	t.Helper()
	p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	baseURL, _ := b.DefaultTarget()
	return b.Prepare(context.Background(), p, translate.Target{Model: "amazon.nova-micro-v1:0", BaseURL: baseURL})
}

func TestSignature(t *testing.T) {
	isolate(t)
	b := &Provider{Region: "eu-west-1", AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", SessionToken: "session"}
	if err := provision(t, b); err != nil {
		t.Fatal(err)
	}
	req, err := signed(t, b)
	if err != nil {
		t.Fatal(err)
	}
	got := req.Header.Get("Authorization")
	for _, want := range []string{
		"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/", "/eu-west-1/bedrock/aws4_request",
		"SignedHeaders=content-length;content-type;host;x-amz-date;x-amz-security-token,",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	if token := req.Header.Get("X-Amz-Security-Token"); token != "session" {
		t.Errorf("got the session token %q", token)
	}
}

func TestDefaultChain(t *testing.T) {
	isolate(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENVIRONMENT")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_REGION", "eu-central-1")
	b := new(Provider)
	if err := provision(t, b); err != nil {
		t.Fatal(err)
	}
	req, err := signed(t, b)
	if err != nil {
		t.Fatal(err)
	}
	if got := req.Header.Get("Authorization"); !strings.Contains(got, "Credential=AKIDENVIRONMENT/") || !strings.Contains(got, "/eu-central-1/bedrock/") {
		t.Errorf("got %q", got)
	}
}

func TestNoCredentials(t *testing.T) {
	isolate(t)
	b := new(Provider)
	if req, err := signed(t, b); err == nil {
		t.Errorf("got %v of a provider that was not provisioned", req)
	}
	if err := provision(t, b); err != nil {
		t.Fatal(err)
	}
	if req, err := signed(t, b); err == nil || !strings.Contains(err.Error(), "api_key") {
		t.Errorf("got %v, %v without any credentials", req, err)
	}
}
