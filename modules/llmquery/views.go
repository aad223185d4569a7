package llmquery

import (
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/storage"
)

// The bounds of saved views: how many there are, and their sizes in bytes.
const (
	maxViews      = 200
	maxViewScreen = 64
	maxViewState  = 16 << 10
)

func listViews(c *call) error {
	views, err := c.journal.Backend().Views(c.ctx, c.org)
	if err != nil {
		return err
	}
	if views == nil {
		views = []storage.View{}
	}
	return apierror.Envelope{Data: views}.Write(c.w, http.StatusOK)
}

func getView(c *call) error {
	v, err := c.savedView()
	if err != nil {
		return err
	}
	return apierror.Envelope{Data: v}.Write(c.w, http.StatusOK)
}

func saveView(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	v := &storage.View{Name: c.r.PathValue("name"), UpdatedAt: storage.Millis(time.Now())}
	var given bool
	v.Screen, _ = b.text("screen")
	v.State, given = b.text("state")
	switch {
	case len(v.Name) > control.MaxName || !utf8.ValidString(v.Name):
		b.fail("name", "1 to %d bytes of UTF-8 are expected", control.MaxName)
	case v.Screen == "" || len(v.Screen) > maxViewScreen:
		b.fail("screen", "a string of 1 to %d bytes is expected", maxViewScreen)
	case !given:
		b.fail("state", "a string is expected")
	case len(v.State) > maxViewState:
		b.fail("state", "at most %d bytes are expected, not %d", maxViewState, len(v.State))
	}
	if err := b.finish(); err != nil {
		return err
	}
	saved, all, err := c.view()
	if err != nil {
		return err
	}
	if saved == nil && len(all) >= maxViews {
		return badRequest("an organisation has at most %d views: delete one", maxViews)
	}
	return c.annotate(http.StatusOK, &storage.Annotation{View: v})
}

func deleteView(c *call) error {
	v, err := c.savedView()
	if err != nil {
		return err
	}
	return c.annotate(http.StatusOK, &storage.Annotation{View: &storage.View{Name: v.Name}})
}

// savedView returns the view in the path.
func (c *call) savedView() (*storage.View, error) {
	v, _, err := c.view()
	if err == nil && v == nil {
		err = fmt.Errorf("no such view: %w", storage.ErrNotFound)
	}
	return v, err
}

// view returns the view in the path, nil if it does not exist, and all views.
func (c *call) view() (*storage.View, []storage.View, error) {
	views, err := c.journal.Backend().Views(c.ctx, c.org)
	i := slices.IndexFunc(views, func(v storage.View) bool { return v.Name == c.r.PathValue("name") })
	if i < 0 || err != nil {
		return nil, views, err
	}
	return &views[i], views, nil
}
