package alert

import (
	"context"
	"time"

	"github.com/weirhq/weir/storage/control"
)

// pagerDutyURL takes events of the service region of the United States.
const pagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

// maxSummary bounds the summary of an event, in bytes.
const maxSummary = 1024

// sendPagerDuty sends an event (https://developer.pagerduty.com/docs/send-alert-event). The id of
// the alert is its dedup_key, so that an event that comes twice changes nothing. A test is
// triggered and resolved.
func (c *Channel) sendPagerDuty(ctx context.Context, m message) error {
	actions := map[string][]string{
		control.StateFiring: {"trigger"}, control.StateResolved: {"resolve"}, control.StateTest: {"trigger", "resolve"},
	}
	title := m.title()
	for _, action := range actions[m.State] {
		err := postJSON(ctx, c.URL, map[string]any{
			"routing_key": c.Address, "event_action": action, "dedup_key": m.Firing.ID, "client": "Weir",
			"payload": map[string]any{
				"summary": title[:min(len(title), maxSummary)], "source": m.Org, "severity": "warning",
				"timestamp": m.FiredAt.Time().Format(time.RFC3339), "custom_details": m.data(),
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
