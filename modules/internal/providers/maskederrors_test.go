package providers

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weirhq/weir/plugins"
)

const (
	team   = "team 16f2151a-40f4-4a80-8ad0-cae00c27e8dd"
	masked = "team ************************************"
)

// No refusal names the platform's account, however it comes. What a model writes stays, and so do the refusals
// of an account that is the organisation's own.
func TestRefusalsDoNotNameTheAccount(t *testing.T) {
	long := strings.Repeat("x", maxRefusal/2)
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"a refusal":          {403, `{"message":"No, ` + team + `."}`, `{"message":"No, ` + masked + `."}`},
		"a refusal in words": {429, "No,\n\n" + team, "No,\n\n" + masked},
		"a long refusal":     {404, `{"error":"` + long + " " + team + long + `"}`, `{"error":"` + long + " " + masked + long + `"}`},
		"a call of a tool":   {200, `{"input":{"error":"` + team + `"}}`, `{"input":{"error":"` + team + `"}}`},
		"nothing":            {500, "", ""},
	} {
		for way, pieces := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "end": iotest.DataErrReader, "half": iotest.HalfReader} {
			for _, platform := range []bool{true, false} {
				answer := &http.Response{StatusCode: c.status, Header: make(http.Header), Body: io.NopCloser(pieces(strings.NewReader(c.body)))}
				want := c.want
				if !platform {
					want = c.body
				}
				a := &Account{key: "sk-aaab-aaac-0123", standIn: "stand-in", Platform: platform, Transport: NewTransport(roundTrip(func(*http.Request) (*http.Response, error) { return answer, nil }))}
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com", nil)
				resp, err := a.Send(req)
				if err != nil {
					t.Fatal(err)
				}
				var body io.Reader = resp.Body
				if way == "half" {
					body = iotest.OneByteReader(body)
				}
				if got, err := io.ReadAll(body); string(got) != want || err != nil {
					t.Errorf("%s, %s, platform %v: %.200q, %v", name, way, platform, got, err)
				}
			}
		}
	}
}

// An error that is stated in an answer with 200 is masked where the gateway tells it.
func TestStatedErrorsDoNotNameTheAccount(t *testing.T) {
	for _, platform := range []bool{true, false} {
		e := plugins.Upstream("No, %s.", team)
		(&Account{Platform: platform}).HideAccount(e)
		if strings.Contains(e.Message, masked) != platform || strings.Contains(e.Message, team) == platform {
			t.Errorf("platform %v: %s", platform, e.Message)
		}
	}
}
