package bedrock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/weirhq/weir/plugins/translate"
)

// configure finds the region and the credentials: those of the provider, or else those of AWS's tools.
func (b *Provider) configure(ctx context.Context) error {
	if (b.AccessKeyID == "") != (b.SecretAccessKey == "") {
		return errors.New("access_key_id and secret_access_key go together: set both or none")
	}
	if b.SessionToken != "" && b.AccessKeyID == "" {
		return errors.New("session_token belongs to an access key: set access_key_id and secret_access_key")
	}
	if b.Role == "" && b.AccessKeyID != "" && b.Region != "" {
		b.region = b.Region
		b.credentials = credentials.NewStaticCredentialsProvider(b.AccessKeyID, b.SecretAccessKey, b.SessionToken)
		return nil
	}
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("reading AWS's configuration: %w", err)
	}
	b.region = cmp.Or(b.Region, c.Region, defaultRegion)
	if b.AccessKeyID != "" {
		c.Credentials = credentials.NewStaticCredentialsProvider(b.AccessKeyID, b.SecretAccessKey, b.SessionToken)
	}
	b.credentials = c.Credentials
	if b.Role != "" {
		c.Region = b.region
		b.sessions = &sessions{client: sts.NewFromConfig(c), role: b.Role, byTags: make(map[string]aws.CredentialsProvider)}
	}
	return nil
}

// signer keeps derived keys, which it shares between requests.
var signer = v4.NewSigner()

// sign signs a request with tags (AWS Signature Version 4). Credentials are cached, and
// fetched again when they expire.
func (b *Provider) sign(req *http.Request, body []byte, tags []translate.Tag) error {
	from := b.credentials
	if b.sessions != nil {
		from = b.sessions.credentials(tags)
	}
	if from == nil {
		return errors.New("bedrock: neither an api_key nor AWS credentials are configured")
	}
	c, err := from.Retrieve(req.Context())
	if err != nil {
		return fmt.Errorf("bedrock: no api_key, and no AWS credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	return signer.SignHTTP(req.Context(), c, req, hex.EncodeToString(sum[:]), "bedrock", b.region, time.Now())
}
