package alert

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/weirhq/weir/storage/control"
)

// fact is a line of a message.
type fact struct {
	Title string `json:"title"`
	Value string `json:"value"`
}

// title is the message in a line.
func (m *message) title() string {
	title := map[string]string{control.StateFiring: "Firing", control.StateResolved: "Resolved", control.StateTest: "Test"}[m.State] + ": " + m.Rule
	if m.Per != "" {
		title += ", " + m.who()
	}
	return title
}

// who is the subject in words, on one line: callers choose the names of users and models, which must
// add no line that looks like Weir's.
func (m *message) who() string {
	if m.Subject == "" {
		return "calls without a " + m.Per
	}
	return m.Per + " " + strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r): // invisible; some turn the direction
			return -1
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		}
		return r
	}, m.Subject)
}

// facts are the message in lines.
func (m *message) facts() []fact {
	facts := []fact{{"Condition", m.Condition}}
	if m.State != control.StateTest {
		facts = append(facts, fact{"Value when it fired", strconv.FormatFloat(m.Value, 'g', 6, 64)})
	}
	facts = append(facts, fact{"Organisation", m.Org}, fact{"Since", m.FiredAt.Time().Format(time.RFC1123)})
	if m.State == control.StateResolved && m.ResolvedAt != nil {
		facts = append(facts, fact{"Until", m.ResolvedAt.Time().Format(time.RFC1123)})
	}
	return append(facts, fact{"Alert", m.Firing.ID})
}

// slackText leaves no markup of names, such as a mention of everybody
// (https://docs.slack.dev/messaging/formatting-message-text#escaping).
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (c *Channel) sendSlack(ctx context.Context, m message) error {
	var text strings.Builder
	fmt.Fprintf(&text, "*%s*", slackText.Replace(m.title()))
	for _, f := range m.facts() {
		fmt.Fprintf(&text, "\n%s: %s", f.Title, slackText.Replace(f.Value))
	}
	return postJSON(ctx, c.Address, map[string]string{"text": text.String()})
}

// cardText leaves no markup of names
// (https://learn.microsoft.com/adaptive-cards/authoring-cards/text-features).
var cardText = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`, "#", `\#`, "<", "&lt;", ">", "&gt;")

// sendTeams sends an Adaptive Card to a workflow that posts what a webhook receives
// (https://support.microsoft.com/office/create-incoming-webhooks-with-workflows-for-microsoft-teams-8ae491c7-0394-4861-ba59-055e33f75498).
func (c *Channel) sendTeams(ctx context.Context, m message) error {
	facts := m.facts()
	for i := range facts {
		facts[i].Value = cardText.Replace(facts[i].Value)
	}
	return postJSON(ctx, c.Address, map[string]any{
		"type": "message",
		"attachments": []any{map[string]any{
			"contentType": "application/vnd.microsoft.card.adaptive",
			"content": map[string]any{
				"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
				"body": []any{
					map[string]any{"type": "TextBlock", "text": cardText.Replace(m.title()), "weight": "Bolder", "wrap": true},
					map[string]any{"type": "FactSet", "facts": facts},
				},
			},
		}},
	})
}
