package plugins

import (
	"net/url"
	"strings"
	"testing"
)

func TestVendors(t *testing.T) {
	domains := make(map[string]string)
	for _, v := range vendors {
		if baseURL, keyEnv := DefaultTarget(v.Name); baseURL != v.BaseURL || keyEnv != v.KeyEnv {
			t.Errorf("there are two vendors named %s", v.Name)
		}
		for _, domain := range v.Domains {
			if other := domains[domain]; other != "" {
				t.Errorf("%s belongs to %s and %s", domain, other, v.Name)
			}
			domains[domain] = v.Name
		}
		if strings.HasPrefix(v.BaseURL, "http://localhost:") || v.BaseURL == "" {
			continue
		}
		u, err := url.Parse(v.BaseURL)
		if err != nil || u.Scheme != "https" || strings.HasSuffix(v.BaseURL, "/") {
			t.Errorf("%s: a base URL is an https:// URL without a slash at its end", v.BaseURL)
		} else if got := VendorOfHost("eu." + u.Host); got != v.Name {
			t.Errorf("eu.%s belongs to %q, want %s", u.Host, got, v.Name)
		}
	}
	for _, host := range []string{"", "localhost", "openai.com", "notapi.openai.com.example", "xapi.x.ai"} {
		if got := VendorOfHost(host); got != "" {
			t.Errorf("%s belongs to %q, want nobody", host, got)
		}
	}
}
