package compat

import (
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

// TestGatewayBrokenOff has providers break off each recorded stream in its
// middle. What has come is ended as the grammar wants it, where nothing has
// there is an error, the record tells, and no library takes it for an answer.
func TestGatewayBrokenOff(t *testing.T) {
	var accounts []account
	for _, r := range recordings(t) {
		if !r.Stream || r.Status != http.StatusOK {
			continue
		}
		half := *r
		half.Name += "_half"
		half.Response = r.Response[:len(r.Response)/2]
		if a, ok := newAccount(&half); ok {
			accounts = append(accounts, a)
		}
	}
	w := startGatewayOf(t, accounts)
	for _, a := range accounts {
		t.Run(a.Name, func(t *testing.T) {
			_, status, answer := w.post(t, a)
			if status == http.StatusOK {
				result, err := plugintest.Check(answer)
				if err != nil {
					t.Fatalf("an illegal stream: %v\n%.3000s", err, answer)
				}
				if result.Status != "failed" {
					t.Errorf("the response is %s", result.Status)
				}
			} else if status != http.StatusBadGateway || gjson.GetBytes(answer, "error.message").Str == "" {
				t.Errorf("status %d: %.500s", status, answer)
			}
			record := w.record(t, a.Name)
			if got := record.Get("end_state").Str; got != "upstream_aborted" {
				t.Errorf("the recorded end state is %q", got)
			}
		})
	}
	if !*withClients {
		return
	}
	for library, l := range libraries {
		t.Run(library, func(t *testing.T) {
			var calls []call
			for _, a := range accounts {
				calls = append(calls, l.calls(t, w, a, gjson.Result{})...)
			}
			got := run(t, l.command, calls)
			for _, c := range calls {
				t.Run(c.ID, func(t *testing.T) {
					if s := got[c.ID]; s.ID == "" || s.Error == nil {
						t.Errorf("the library saw %+v, no error", s)
					}
				})
			}
		})
	}
}
