package control

import "testing"

func TestHeaders(t *testing.T) {
	h, err := NewHeaders([]string{"Service", "helicone", "X-LLM-"}, []string{"userTier"})
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]string{
		"Service-User-Id":  "User-Id",
		"Helicone-User-Id": "User-Id",
		"X-Llm-User-Id":    "User-Id",
		"Services-User-Id": "",
		"Authorization":    "",
	} {
		if got, ok := h.Cut(header); got != want || ok != (want != "") {
			t.Errorf("Cut(%s) = %q, %v", header, got, ok)
		}
	}
	if got := h.propertyName("Usertier"); got != "userTier" {
		t.Errorf("propertyName(Usertier) = %s", got)
	}
	if got := h.propertyName("App"); got != "App" {
		t.Errorf("propertyName(App) = %s", got)
	}
}
