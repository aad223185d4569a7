package llmgateway

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins"
)

// fileID names a file or a batch at a provider.
type fileID struct {
	account *providers.Account
	id      string
	batch   string // the batch whose results the file has, "" if it is not known to have any
}

// tagBytes is the length of the HMAC in an id, in bytes.
const tagBytes = 16

// sealID returns the id as clients of an organisation see it: the provider's id, the id of
// the batch and an HMAC, with dots between them. So the gateway needs no table of files, also
// after a restart and on other nodes, and no organisation can name the files of another.
func sealID(m *secret.Secrets, org string, f fileID) string {
	shown := f.id
	if f.batch != "" {
		shown += "." + f.batch
	}
	label := f.account.Label + " " + strconv.FormatBool(f.account.Platform)
	tag := m.Key("file", secret.Owner{Org: org, User: label}, []byte(shown))
	return shown + "." + base64.RawURLEncoding.EncodeToString(tag[:tagBytes])
}

// openID is the reverse of sealID. It is false for an id that is not the organisation's, or
// whose account is no longer configured.
func (h *Handler) openID(org, sealed string) (fileID, bool) {
	parts := strings.Split(sealed, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return fileID{}, false
	}
	secrets, err := h.secrets()
	if err != nil {
		return fileID{}, false
	}
	f := fileID{id: parts[0]}
	if len(parts) == 3 {
		f.batch = parts[1]
	}
	for _, f.account = range h.site.App.Accounts().Of(org) {
		if sealID(secrets, org, f) == sealed {
			return f, true
		}
	}
	return fileID{}, false
}

// openFiles puts the provider's ids into a call that names files which were uploaded
// here, and returns the targets at the account that has them. Ids that were not given out
// here stay in c.stored.IDs.
func (c *call) openFiles(targets []routing.Target) ([]routing.Target, error) {
	var unknown []bound.StateID
	for _, named := range c.stored.IDs {
		f, ok := c.h.openID(c.exchange.Record.Org, named.ID)
		if !ok {
			unknown = append(unknown, named)
			continue
		}
		targets = slices.DeleteFunc(slices.Clone(targets), func(t routing.Target) bool { return t.Account != f.account })
		if len(targets) == 0 {
			return nil, plugins.Invalid(named.Param, "'%s' names a file that %s has: name a model of that provider.", named.Param, f.account.Label)
		}
		c.input.sent = bytes.ReplaceAll(c.input.sent, []byte(`"`+named.ID+`"`), []byte(`"`+f.id+`"`))
	}
	c.stored.IDs = unknown
	return targets, nil
}
