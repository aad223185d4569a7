package standard

import (
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmadmin"
)

// aSecret is how secrets of keys look.
var aSecret = regexp.MustCompile(`weir_[A-Z2-7]{52}`)

// The secrets of keys are in the answers that make them, and nowhere else: no file, log, list,
// audit entry, error, metric or backup.
func TestSecretsOfKeysAreNowhere(t *testing.T) {
	s := serve(t)
	secrets := 300
	if *full {
		secrets = 10_000
	}
	var one, id string
	for n := range secrets {
		path, body := "/v1/keys", fmt.Sprintf(`{"name":"key %d","scopes":["gateway","query"]}`, n)
		if n%3 == 2 {
			path, body = "/v1/keys/"+id+"/rotate", `{"overlap_seconds":3600}`
		}
		a := s.send("POST", path, "walker-root", jsonType, []byte(body))
		one = gjson.Get(a.body, "data.secret").Str
		if !aSecret.MatchString(one) {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if n%3 == 0 {
			id = gjson.Get(a.body, "data.id").Str
		}
	}
	if a := s.send("POST", "/v1/responses", one, jsonType, []byte(`{"model":"echo/echo-1","input":"a"}`)); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	told := map[string]string{
		"an error":         s.send("POST", "/v1/responses", one+"x", jsonType, []byte(`{"model":"echo/echo-1"}`)).body,
		"a missing scope":  s.send("GET", "/v1/keys", one, jsonType, nil).body,
		"an error by path": s.send("GET", "/v1/keys/"+one, "walker-root", jsonType, nil).body,
		"the metrics":      s.send("GET", "/metrics", "walker-root", jsonType, nil).body,
		"the key itself":   s.send("GET", "/v1/key", one, jsonType, nil).body,
		"a record":         s.send("POST", "/v1/request/query", one, jsonType, []byte(`{"filter":"all"}`)).body,
	}
	for _, list := range []string{"/v1/keys?limit=200", "/v1/audit?limit=200", "/v1/organization/admin_api_keys?limit=100", "/v1/organization/audit_logs?limit=100"} {
		told[list] = s.send("GET", list, "walker-root", jsonType, nil).body
	}
	if !strings.Contains(told["/v1/audit?limit=200"], "key.created") {
		t.Errorf("the audit log tells nothing: %.200s", told["/v1/audit?limit=200"])
	}
	backups := t.TempDir()
	for _, r := range new(llmadmin.API).Routes() {
		if strings.HasSuffix(r.Pattern, "backup") {
			w := httptest.NewRecorder()
			err := r.Handler.ServeHTTP(w, httptest.NewRequest("POST", r.Pattern, strings.NewReader(`{"directory":"`+backups+`/b"}`)))
			told["a backup"] = fmt.Sprint(w.Body, err)
		}
	}
	for what, text := range told {
		if aSecret.MatchString(text) {
			t.Errorf("%s tells a secret", what)
		}
	}
	s.flush()
	for _, dir := range []string{s.dir, backups} {
		found, read := matches(t, dir, aSecret)
		if len(found) > 0 || read == 0 {
			t.Errorf("secrets are in %q, of %d files of %s", found, read, dir)
		}
	}
}

// matches returns the files below a directory that match, and how many were read.
func matches(t *testing.T, dir string, pattern *regexp.Regexp) (found []string, read int) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if read++; pattern.Match(content) {
			found = append(found, path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	return found, read
}
