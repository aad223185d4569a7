package llmcontrol

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/modules/internal/bills"
	"github.com/weirhq/weir/plugins"
)

// billOutput is a bill of the configuration, without what names its key.
type billOutput struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	// First is the first day that can be compared, nil for any.
	First *reconcile.Day `json:"first_day"`
}

func listBills(c *call) (any, error) {
	items := []billOutput{}
	for _, b := range c.app.Reconciler().Bills(c.org.Name) {
		output := billOutput{Name: b.Name, Provider: b.Provider}
		if first := b.Source().First(time.Now()); first > 0 {
			output.First = &first
		}
		items = append(items, output)
	}
	return page{Items: items}, nil
}

// maxReconciledDays bounds the days that are compared at once.
const maxReconciledDays = 366

// createReconciliation compares a bill with the records of the caller's organisation. It ends with
// its client.
func createReconciliation(c *call) (any, error) {
	request := struct {
		Bill  string `json:"bill"`
		Since string `json:"since"`
		Until string `json:"until"`
	}{}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	all := c.app.Reconciler().Bills(c.org.Name)
	i := slices.IndexFunc(all, func(b *bills.Bill) bool { return b.Name == request.Bill })
	if i < 0 {
		return nil, bad("bill: there is no bill %q in the configuration; GET /v1/reconciliations/bills lists those that it has", request.Bill)
	}
	window := all[i].Source().LastWindow(time.Now())
	if request.Since != "" || request.Until != "" {
		var err error
		if window, err = reconcile.ParseWindow(request.Since, request.Until); err != nil {
			return nil, bad("%v", err)
		}
	}
	if window.To-window.From > maxReconciledDays {
		return nil, bad("until: at most %d days are compared at once", maxReconciledDays)
	}
	report, err := c.app.Reconciler().Compare(c.ctx, c.org.Name, all[i], window)
	if early, ok := errors.AsType[*reconcile.TooEarlyError](err); ok {
		return nil, bad("%v", early)
	}
	if unreadable, ok := errors.AsType[*bills.UnreadableError](err); ok && c.ctx.Err() == nil {
		return nil, &plugins.Error{Status: http.StatusBadGateway, Message: unreadable.Error()}
	}
	if errors.Is(err, reconcile.ErrOverflow) {
		return nil, bad("%v", err)
	}
	return report, err
}
