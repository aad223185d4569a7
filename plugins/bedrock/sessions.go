package bedrock

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/weirhq/weir/plugins/translate"
)

// sessions are those of a role that is assumed: one for each set of tags, which AWS writes on the
// invoice for the calls of the session
// (https://docs.aws.amazon.com/bedrock/latest/userguide/cost-mgmt-iam-principal-tracking.html).
type sessions struct {
	client *sts.Client
	role   string

	mu     sync.Mutex
	byTags map[string]aws.CredentialsProvider // guarded by mu
}

// maxSessions bounds the sessions that are kept, each for up to an hour.
const maxSessions = 10_000

// credentials returns the credentials of the session with these tags, which are fetched when they are first
// needed.
func (s *sessions) credentials(tags []translate.Tag) aws.CredentialsProvider {
	key := fmt.Sprintf("%q", tags)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.byTags[key]; ok {
		return c
	}
	for other := range s.byTags { // any
		if len(s.byTags) < maxSessions {
			break
		}
		delete(s.byTags, other)
	}
	c := aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(s.client, s.role, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = "weir"
		for _, tag := range tags {
			o.Tags = append(o.Tags, types.Tag{Key: aws.String(tag.Name), Value: aws.String(tag.Value)})
		}
	}))
	s.byTags[key] = c
	return c
}

// The greatest lengths of a tag's name and value, in characters
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_Tag.html).
const (
	maxTagName  = 128
	maxTagValue = 256
)

// CheckTag implements translate.Tagger.
func (b *Provider) CheckTag(t translate.Target, tag translate.Tag) error {
	switch {
	case b.Role == "":
		return errors.New("needs a role that is assumed for it: set `role`")
	case t.Key != "":
		return errors.New("is no part of calls with an api_key: use the credentials of an AWS account")
	case len([]rune(tag.Name)) > maxTagName || len([]rune(tag.Value)) > maxTagValue:
		return fmt.Errorf("is too long: AWS takes names of %d and values of %d characters", maxTagName, maxTagValue)
	case strings.HasPrefix(strings.ToLower(tag.Name), "aws:"):
		return errors.New("begins with aws:, which AWS keeps for itself")
	case strings.ContainsFunc(tag.Name+tag.Value, func(c rune) bool {
		return !unicode.In(c, unicode.L, unicode.Z, unicode.N) && !strings.ContainsRune("_.:/=+-@", c)
	}):
		return errors.New("has other characters than AWS takes: letters, digits, spaces and _.:/=+-@")
	}
	return nil
}

var _ translate.Tagger = (*Provider)(nil)
