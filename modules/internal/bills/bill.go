package bills

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/internal/reconcile"
)

// Bill is the bill of a provider for an organisation's calls.
type Bill struct {
	// Name is unique in the organisation.
	Name string `json:"name"`

	// Provider is `openai`, `anthropic`, `openrouter`, `aws` or `google`. Default: the name.
	Provider string `json:"provider,omitempty"`

	// AdminKey names the provider's key that may read the bill, as a placeholder such as
	// `{env.OPENAI_ADMIN_KEY}` or `{file./run/secrets/openai}`. It is read whenever the bill is, and
	// kept nowhere. `aws` and `google` have none.
	AdminKey string `json:"admin_key,omitempty"`

	// Files are the exports of `aws` and `google`, as paths or patterns such as
	// `/var/lib/weir/bills/cur-*.csv.gz`.
	Files []string `json:"files,omitempty"`

	// URL is the address of the provider's API. Default: the provider's own.
	URL string `json:"url,omitempty"`

	// Keys are the provider's ids of the keys, projects or workspaces that calls through Weir use,
	// each with the label of the provider in Weir that has it, or all with "" for any. Default: every
	// key is taken for one of Weir's.
	Keys map[string]string `json:"keys,omitempty"`

	// Models are the models of names that the bill of a cloud has for them.
	Models map[string]string `json:"models,omitempty"`

	running chan struct{} // has an element while the bill is compared
}

// Provision checks the bill. It does not read it.
func (b *Bill) Provision() error {
	b.running = make(chan struct{}, 1)
	if b.Provider == "" {
		b.Provider = b.Name
	}
	if b.Name == "" {
		return errors.New("a bill takes a name")
	}
	if err := b.Source().Check(); err != nil {
		return fmt.Errorf("bill %s: %w", b.Name, err)
	}
	if err := reconcile.CheckKeys(b.Keys); err != nil {
		return fmt.Errorf("bill %s: %w", b.Name, err)
	}
	switch {
	case len(b.Files) > 0 && (b.AdminKey != "" || b.URL != ""):
		return fmt.Errorf("bill %s: files are read without a key: leave out admin_key and url", b.Name)
	case len(b.Files) == 0 && !placeholder.MatchString(b.AdminKey):
		return fmt.Errorf("bill %s: admin_key: %w", b.Name, errNoPlaceholder)
	}
	return nil
}

// Source returns the place from which the bill is read, without the key.
func (b *Bill) Source() reconcile.Source {
	return reconcile.Source{Provider: b.Provider, API: reconcile.API{URL: b.URL}, Files: b.Files}
}

// placeholder matches a reference to a key. A configuration must not have the key itself, because others
// can read configurations and the arguments of processes.
var placeholder = regexp.MustCompile(`^\{(env|file)\.[^{}]+\}$`)

var errNoPlaceholder = errors.New("expected {env.NAME} or {file./path}, and not the key itself: others can read the arguments of a process, and configurations")

// AdminKey returns the key that a placeholder names.
func AdminKey(reference string) (string, error) {
	if !placeholder.MatchString(reference) {
		return "", errNoPlaceholder
	}
	key, err := caddy.NewReplacer().ReplaceOrErr(reference, true, true)
	if key = strings.TrimSpace(key); err != nil || key == "" {
		return "", fmt.Errorf("%s is empty, or cannot be read: it must have the key of an administrator at the provider", reference)
	}
	return key, nil
}
