package access

import (
	"testing"

	"go.uber.org/zap"
)

// The losses of a store are of an organisation that has the store alone.
func TestIsAlone(t *testing.T) {
	for _, c := range []struct {
		homes map[string]string
		org   string
		want  bool
	}{
		{nil, "default", true},
		{map[string]string{"acme": "eu"}, "default", true},
		{map[string]string{"acme": "eu"}, "acme", true},
		{map[string]string{"acme": "eu", "globex": "eu"}, "acme", false},
		{map[string]string{"acme": "default"}, "default", false},
		{map[string]string{"acme": "default"}, "acme", false},
		{map[string]string{"acme": "eu", "default": "eu"}, "default", false},
	} {
		a := NewAuthenticator(c.homes, nil, zap.NewNop())
		if got := a.IsAlone(c.org); got != c.want {
			t.Errorf("%s of %v: %v", c.org, c.homes, got)
		}
	}
}
