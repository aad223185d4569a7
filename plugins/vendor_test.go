package plugins

import (
	"net/url"
	"strings"
	"testing"
)

func TestVendors(t *testing.T) {
	domains := make(map[string]string)
	for _, v := range vendors {
		if baseURL, keyEnv := DefaultTarget(v.name); baseURL != v.baseURL || keyEnv != v.keyEnv {
			t.Errorf("there are two vendors named %s", v.name)
		}
		for _, domain := range v.domains {
			if other := domains[domain]; other != "" {
				t.Errorf("%s belongs to %s and %s", domain, other, v.name)
			}
			domains[domain] = v.name
		}
		if strings.HasPrefix(v.baseURL, "http://localhost:") || v.baseURL == "" {
			continue
		}
		u, err := url.Parse(v.baseURL)
		if err != nil || u.Scheme != "https" || strings.HasSuffix(v.baseURL, "/") {
			t.Errorf("%s: a base URL is an https:// URL without a slash at its end", v.baseURL)
		} else if got := VendorOfHost("eu." + u.Host); got != v.name {
			t.Errorf("eu.%s belongs to %q, want %s", u.Host, got, v.name)
		}
	}
	for _, host := range []string{"", "localhost", "openai.com", "notapi.openai.com.example", "xapi.x.ai"} {
		if got := VendorOfHost(host); got != "" {
			t.Errorf("%s belongs to %q, want nobody", host, got)
		}
	}
}
