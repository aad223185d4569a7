// Package bedrock translates between the neutral request and the Converse API of
// Amazon Bedrock (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html).
package bedrock

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weirhq/weir/plugins/translate"
)

// Provider speaks Amazon Bedrock's Converse API.
//
// Its `api_key` is a key of Bedrock's own, and by default that of
// `AWS_BEARER_TOKEN_BEDROCK`. Without one, requests are signed with the
// credentials that are set here, or else with those that AWS's tools find: in the
// environment, in `~/.aws`, or in the instance or container. `base_url` is by
// default that of the region.
//
// The effort of `reasoning` becomes what the model's maker has for it: adaptive
// thinking or a share of `max_output_tokens` with Claude, an effort with Nova and
// gpt-oss. A `json_schema` becomes an output format, or with models that have none
// the arguments of a call. `web_search` and `code_interpreter` become the tools
// that Bedrock hosts for Nova. What has no equivalent is refused, or left out with
// a warning.
type Provider struct {
	// Region is the AWS region. Default: that of AWS's environment variables or
	// configuration files, or else `us-east-1`.
	Region string `json:"region,omitempty"`

	// AccessKeyID is the id of an AWS access key, best as a placeholder like
	// `{env.BEDROCK_KEY_ID}`.
	AccessKeyID string `json:"access_key_id,omitempty"`

	// SecretAccessKey is the secret of that access key.
	SecretAccessKey string `json:"secret_access_key,omitempty"`

	// SessionToken belongs to an access key that is temporary.
	SessionToken string `json:"session_token,omitempty"`

	// Role is the ARN of an IAM role that is assumed to make calls, which pays for them. `tags` needs it. Default:
	// calls are made by the credentials themselves.
	Role string `json:"role,omitempty"`

	region      string
	credentials aws.CredentialsProvider
	sessions    *sessions // of the role, nil without one
}

// defaultRegion is the one with the most models.
const defaultRegion = "us-east-1"

// DefaultTarget is Bedrock in the region, and the environment variable that holds
// its key.
func (b *Provider) DefaultTarget() (baseURL, keyEnv string) {
	region := b.region
	if region == "" {
		region = defaultRegion
	}
	return "https://bedrock-runtime." + region + ".amazonaws.com", "AWS_BEARER_TOKEN_BEDROCK"
}

// KeyOptional reports that requests without a key are signed.
func (*Provider) KeyOptional() bool { return true }

// HasCredentials reports that they are signed with configured credentials, not
// with what AWS's default chain finds on the machine.
func (b *Provider) HasCredentials() bool { return b.AccessKeyID != "" }

// KeyHeader implements translate.KeyHeader: requests may be signed.
func (*Provider) KeyHeader() string { return "" }

// Prepare implements translate.Provider.
func (b *Provider) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t)
	if err != nil {
		return nil, err
	}
	body, err := translate.Encode(r)
	if err != nil {
		return nil, err
	}
	operation := "converse"
	if p.Stream {
		operation += "-stream"
	}
	return b.post(ctx, t, operation, body)
}

// post returns the request for an operation of the target's model.
func (b *Provider) post(ctx context.Context, t translate.Target, operation string, body []byte) (*http.Request, error) {
	// AWS's own clients escape the colon too, which url.PathEscape does not.
	path := "/model/" + strings.ReplaceAll(url.PathEscape(t.Model), ":", "%3A") + "/" + operation
	req, err := t.Post(ctx, path, translate.Bearer, body)
	if err != nil || t.Key != "" {
		return req, err
	}
	return req, b.sign(req, body, t.Tags)
}

var _ translate.Provider = (*Provider)(nil)
