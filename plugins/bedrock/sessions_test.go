package bedrock

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins/translate"
)

// Calls with the same tags share a session of the role, which has these tags. Where AWS refuses
// one, no call is made.
func TestSessionTags(t *testing.T) {
	isolate(t)
	var asked atomic.Int64
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		n := asked.Add(1)
		project := r.Form.Get("Tags.member.2.Value")
		if r.Form.Get("Action") != "AssumeRole" || r.Form.Get("RoleArn") != "arn:aws:iam::1:role/weir" || r.Form.Get("Tags.member.1.Key") != "user" ||
			r.Form.Get("Tags.member.2.Key") != "project" || project == "forbidden" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>not authorized to perform: sts:TagSession</Message></Error></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA%d</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>of %s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
			n, project, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer sts.Close()
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	b := &Provider{Region: "eu-west-1", AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", Role: "arn:aws:iam::1:role/weir"}
	if err := provision(t, b); err != nil {
		t.Fatal(err)
	}
	call := func(project string) (*http.Request, error) {
		p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi"}`))
		if err != nil {
			t.Fatal(err)
		}
		return b.Prepare(t.Context(), p, translate.Target{
			Model: "amazon.nova-micro-v1:0", BaseURL: "https://bedrock.test", Tags: []translate.Tag{{Name: "user", Value: "ada@example.com"}, {Name: "project", Value: project}},
		})
	}
	for i, c := range []struct{ project, key string }{{"search", "ASIA1"}, {"search", "ASIA1"}, {"chat", "ASIA2"}, {"search", "ASIA1"}} {
		req, err := call(c.project)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(req.Header.Get("Authorization"), "Credential="+c.key+"/") || req.Header.Get("X-Amz-Security-Token") != "of "+c.project {
			t.Errorf("call %d of %s: %v", i, c.project, req.Header)
		}
	}
	if _, err := call("forbidden"); err == nil || !strings.Contains(err.Error(), "sts:TagSession") {
		t.Errorf("a session that AWS refuses: %v", err)
	}
}

func TestCheckTag(t *testing.T) {
	role := &Provider{Role: "arn"}
	for _, c := range []struct {
		b    *Provider
		t    translate.Target
		tag  translate.Tag
		want string
	}{
		{role, translate.Target{}, translate.Tag{Name: "user", Value: "Ada Łovelace +1 <"}, "other characters"},
		{role, translate.Target{}, translate.Tag{Name: "user", Value: "Ada Łovelace_.:/=+-@"}, ""},
		{role, translate.Target{}, translate.Tag{Name: "user", Value: strings.Repeat("ö", 257)}, "too long"},
		{role, translate.Target{}, translate.Tag{Name: "AWS:user", Value: "x"}, "keeps for itself"},
		{role, translate.Target{Key: "k"}, translate.Tag{Name: "user", Value: "x"}, "api_key"},
		{new(Provider), translate.Target{}, translate.Tag{Name: "user", Value: "x"}, "set `role`"},
	} {
		err := c.b.CheckTag(c.t, c.tag)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", url.QueryEscape(c.tag.Value), err, c.want)
		}
	}
}
