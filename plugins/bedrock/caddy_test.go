package bedrock

import (
	"context"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestCaddyfile(t *testing.T) {
	plugintest.Caddyfile(t, "llm.providers.bedrock", "region", "access_key_id", "secret_access_key", "session_token")
}

// isolate leaves no AWS configuration of the machine in the way.
func isolate(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/credentials")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
	}
}

func provision(t *testing.T, b *Provider) error {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	return b.Provision(ctx)
}

func TestRegion(t *testing.T) {
	for _, test := range []struct{ region, env, want string }{
		{"", "", "https://bedrock-runtime.us-east-1.amazonaws.com"},
		{"", "eu-west-1", "https://bedrock-runtime.eu-west-1.amazonaws.com"},
		{"{env.TEST_REGION}", "eu-west-1", "https://bedrock-runtime.ap-south-1.amazonaws.com"},
	} {
		isolate(t)
		t.Setenv("AWS_REGION", test.env)
		t.Setenv("TEST_REGION", "ap-south-1")
		b := &Provider{Region: test.region}
		if err := provision(t, b); err != nil {
			t.Fatal(err)
		}
		if got, keyEnv := b.DefaultTarget(); got != test.want || keyEnv != "AWS_BEARER_TOKEN_BEDROCK" {
			t.Errorf("%+v: got %s and %s", test, got, keyEnv)
		}
	}
}

func TestIncompleteAccessKey(t *testing.T) {
	isolate(t)
	for _, b := range []*Provider{{AccessKeyID: "a"}, {SecretAccessKey: "s"}, {SessionToken: "t"}, {AccessKeyID: "{env.NONE}", SecretAccessKey: "{env.NONE}"}} {
		if err := provision(t, b); err == nil {
			t.Errorf("%+v is provisioned", b)
		}
	}
}
