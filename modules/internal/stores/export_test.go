package stores

import (
	"maps"
	"strings"
	"testing"
)

func TestExportSettings(t *testing.T) {
	t.Setenv("COLLECTOR", "collector.example.com")
	for given, want := range map[string]string{
		"http://localhost:4318":                 "http://localhost:4318/v1/traces",
		"https://{env.COLLECTOR}/":              "https://collector.example.com/v1/traces",
		"https://collector.example.com/otlp/in": "https://collector.example.com/otlp/in",
		"":                                      "",
		"localhost:4318":                        "",
		"grpc://localhost:4317":                 "",
		"https://":                              "",
		"https://me:pass@collector.example.com": "",
		"https://collector.example.com/in?k=v":  "",
	} {
		e := &Export{Endpoint: given}
		switch err := e.provision(); {
		case want == "" && (err == nil || !strings.Contains(err.Error(), "like http://localhost:4318") || strings.Contains(err.Error(), "pass")):
			t.Errorf("%s: %v", given, err)
		case want != "" && (err != nil || e.Endpoint != want):
			t.Errorf("%s: %s, %v", given, e.Endpoint, err)
		}
	}
	e := &Export{Endpoint: "http://localhost", Headers: map[string]string{"Authorization": "Bearer {env.COLLECTOR}"}}
	if err := e.provision(); err != nil || !maps.Equal(e.Headers, map[string]string{"Authorization": "Bearer collector.example.com"}) {
		t.Errorf("%v, %v", e.Headers, err)
	}
	if err := (&Export{Endpoint: "http://localhost", Headers: map[string]string{"a b": "c"}}).provision(); err == nil {
		t.Error("a name with a space is taken")
	}
}
