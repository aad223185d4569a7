package stores

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A secret that is gone, empty or cut is made anew, never used as it is, and told once.
func TestASecretThatIsLostIsTold(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"gone":  os.Remove,
		"empty": func(path string) error { return os.Truncate(path, 0) },
		"cut":   func(path string) error { return os.Truncate(path, 3) },
		"other": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("A"), 26), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			c, unload := configured(t, filepath.Join(t.TempDir(), "weir.db"), "")
			defer unload()
			first, err := c.Store().Secret()
			if err != nil || len(first) < 26 {
				t.Fatal(first, err)
			}
			if again, err := c.Store().Secret(); err != nil || !bytes.Equal(first, again) || len(c.Store().Opened().Integrity().Damage) > 0 {
				t.Fatal(again, err)
			}
			if err := harm(filepath.Join(c.Store().Dir(), secretName)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				next, err := c.Store().Secret()
				if damage := c.Store().Opened().Integrity().Damage; err != nil || len(next) < 26 || bytes.Equal(first, next) || len(damage) != 1 || damage[0].File != secretName {
					t.Errorf("the secret is %q, %v, and this is said: %+v", next, err, damage)
				}
			}
		})
	}
}
