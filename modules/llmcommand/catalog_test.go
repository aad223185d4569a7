package llmcommand

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
	"github.com/weirhq/weir/plugins/catalog"
)

// A running Weir uses the prices of a published catalogue once `weir catalog update` has ended, and
// keeps its own if the signature is another's or the option is missing. An installed file that it
// cannot verify stops neither its start nor the update.
func TestCatalogUpdate(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	day := catalog.Default().Date().AddDate(0, 0, 1).Format(time.DateOnly)
	text := fmt.Appendf(nil, `{"version":%q,"providers":[{"id":"acme","models":[{"id":"large","prices":[{"input":"1"}]}]}]}`, day)
	folder := t.TempDir()
	for name, content := range map[string][]byte{
		"catalog.json": text, "catalog.json.minisig": minisign.Sign(private, text),
		"forged.json": bytes.Replace(text, []byte(`"1"`), []byte(`"0"`), 1), "forged.json.minisig": minisign.Sign(private, text),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	publisher := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer publisher.Close()
	path, admin := filepath.Join(t.TempDir(), "weir.db"), ""
	load := func(key string) {
		t.Helper()
		admin = freeport.Address(t) // or the server of the configuration before would take calls while it stops
		config := fmt.Sprintf(`{
			"admin": {"listen": %q, "config": {"persist": false}},
			"logging": {"logs": {"default": {"level": "ERROR"}}},
			"apps": {"llm": {"catalog_key": %q, "stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}}}}
		}`, admin, key, path)
		if err := caddy.Load([]byte(config), true); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { storestest.Stop(t) })
	var out bytes.Buffer
	command := func(args ...string) error {
		out.Reset()
		_, err := run(t.Context(), catalogCommand, &out, append(args, "--admin", admin)...)
		return err
	}

	load("")
	if err := command("update", filepath.Join(folder, "catalog.json")); err == nil || !strings.Contains(err.Error(), "the Caddyfile has no `catalog_key`") {
		t.Errorf("without a trusted key: %v", err)
	}
	encoded, err := public.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	installed := path + ".segments" // the folder of the store
	if err := os.MkdirAll(installed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(installed, "catalog.signed"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	load(string(encoded[bytes.LastIndexByte(bytes.TrimSpace(encoded), '\n')+1:]))
	if err := command("update", publisher.URL+"/forged.json"); err == nil || !strings.HasPrefix(err.Error(), "the admin endpoint "+admin+": the catalogue is not signed by the key") {
		t.Errorf("a forged one: %v", err)
	}
	if err := command("update", publisher.URL+"/none.json"); err == nil || !strings.Contains(err.Error(), "404 Not Found") {
		t.Errorf("one that is not there: %v", err)
	}
	out.Reset()
	if _, err := run(t.Context(), doctorCommand, &out, "--admin", admin); err == nil || !strings.Contains(out.String(), "the installed catalogue is not used: ") {
		t.Errorf("doctor, with a damaged file: %v\n%s", err, &out)
	}
	if err := command("update", publisher.URL+"/catalog.json"); err != nil || !strings.Contains(out.String(), "The prices are of "+day+" now. Before, they were of "+catalog.Default().Version()) {
		t.Fatalf("%v\n%s", err, &out)
	}
	if err := command("update", filepath.Join(folder, "catalog.json")); err != nil || !strings.Contains(out.String(), "The prices are of "+day+" already.") {
		t.Errorf("again: %v\n%s", err, &out)
	}
	out.Reset()
	if _, err := run(t.Context(), doctorCommand, &out, "--admin", admin); !strings.Contains(out.String(), "prices: are of "+day) || strings.Contains(out.String(), "not used") {
		t.Errorf("doctor: %v\n%s", err, &out)
	}
}
