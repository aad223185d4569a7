// Package responsesapi serves the stored objects of the Responses API: responses with their input,
// including responses that are generated in the background, and conversations.
//
// Its tests are background_test.go, conversations_test.go and backgroundnodes_test.go of llmgateway.
package responsesapi

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/llmgateway/background"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/shared"
)

// Deps has the stores in which the objects are.
type Deps struct {
	// Journal has the records, and the conversations.
	Journal func() (history.Journal, error)
	// Mask returns what masks the names of an organisation's users in records, nil for nothing.
	Mask func(org string, also mask.Content) *mask.Masker
	// Runs are the background responses of this process.
	Runs *background.Runs
	// Nodes are the background responses of other nodes. It is nil if nodes share nothing.
	Nodes func() shared.Runs
	// Secrets encrypt what nodes share.
	Secrets func() (*secret.Secrets, error)
	Logger  *zap.Logger
}

// Store returns the stored objects that the caller of a record may use.
func (r *Deps) Store(caller *storage.Record) (*history.Store, error) {
	journal, err := r.Journal()
	if err != nil {
		return nil, err
	}
	user := r.Mask(caller.Org, mask.Content{}).Name(caller.UserID, nil)
	return &history.Store{Journal: journal, Org: caller.Org, User: user, Mask: caller.ContentMask()}, nil
}

// Call is a request for a stored object. Its caller has been authenticated.
type Call struct {
	*Deps
	Store *history.Store // of the caller
	W     http.ResponseWriter
	R     *http.Request
	// ID and Item are the ids in the path.
	ID, Item string
	// Omits is the name of the request's header that forbids storing content, "" if there is
	// none.
	Omits string
	// Body reads the body, a JSON object of at most MaxBody bytes.
	Body func() ([]byte, error)
	// Memory is the memory budget that all requests share.
	Memory *admission.Memory

	loaded admission.Reservation // the memory that is reserved for the loaded conversation
	object gjson.Result          // the parsed body
}

// MaxBody is the size of the largest body of a request, in bytes.
const MaxBody = 12 << 20

// Release gives back the memory of the loaded conversation.
func (c *Call) Release() { c.loaded.Release() }

// readBody reads the body, which may have only these fields. The content will be stored, so
// readBody refuses a caller who forbids that.
func (c *Call) readBody(fields ...string) error {
	if c.Omits != "" {
		return plugins.Invalid(c.Omits, "A conversation keeps its content, and the header %s forbids to keep content: send the request without the header, or the items as 'input' of a call.", c.Omits).
			WithCode("content_omitted")
	}
	body, err := c.Body()
	if err != nil {
		return err
	}
	c.object = gjson.ParseBytes(body)
	c.object.ForEach(func(key, _ gjson.Result) bool {
		if !slices.Contains(fields, key.Str) {
			err = plugins.Invalid(key.Str, "Unknown parameter: '%.128s'.", key.Str).WithCode("unknown_parameter")
		}
		return err == nil
	})
	return err
}

// deletion is the answer when something was deleted.
type deletion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

const (
	defaultItems = 20
	maxListed    = 100
)

// readPage reads from the query which items are requested. By default the newest come first.
func (c *Call) readPage() (page storage.ItemPage, err error) {
	query := c.R.URL.Query()
	page = storage.ItemPage{Limit: defaultItems, After: query.Get("after"), Descending: true}
	if text := query.Get("limit"); text != "" {
		if page.Limit, err = strconv.Atoi(text); err != nil || page.Limit < 1 || page.Limit > maxListed {
			return page, plugins.Invalid("limit", "Invalid 'limit': a number of 1 to %d is expected.", maxListed)
		}
	}
	switch query.Get("order") {
	case "", "desc":
	case "asc":
		page.Descending = false
	default:
		return page, plugins.Invalid("order", "Invalid 'order': 'asc' or 'desc' is expected.")
	}
	return page, nil
}
