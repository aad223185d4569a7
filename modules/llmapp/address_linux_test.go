package llmapp

import (
	"net"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard"

	"github.com/weirhq/weir/internal/testkit/freeport"
)

// An address that another process claims is refused by name; one that the
// configuration before claims is not.
func TestClaimedAddress(t *testing.T) {
	address := freeport.Address(t)
	config := []byte(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"apps": {
			"llm": {"stores": {"default": ` + sqliteAt(t.TempDir()+"/weir.db") + `}},
			"http": {"servers": {"s": {"listen": ["` + address + `"]}}}
		}
	}`)
	socket := &net.UnixAddr{Net: "unixgram", Name: "@weir/" + address}
	other, err := net.ListenUnixgram("unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err == nil || !strings.Contains(err.Error(), "another Weir serves "+address) {
		t.Errorf("an address that is claimed: %v", err)
	}
	other.Close()
	for range 2 { // a reload keeps what it has
		if err := caddy.Load(config, true); err != nil {
			t.Fatal(err)
		}
	}
	if other, err := net.ListenUnixgram("unixgram", socket); err == nil {
		other.Close()
		t.Error("the address is not claimed after a reload")
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	other, err = net.ListenUnixgram("unixgram", socket)
	if err != nil {
		t.Fatalf("the address is claimed after the end: %v", err)
	}
	other.Close()
}
