package llmotlp

import (
	"fmt"

	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/storage"
)

// evaluated is the event that gives a call a score.
// https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/#event-gen_aievaluationresult
const evaluated = "gen_ai.evaluation.result"

// scores returns the scores of the span's events, nil if there are none, and warnings.
func (c *call) scores(r *storage.Record) (a *storage.Annotation, warnings []string) {
	a = &storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.UpdatedAt, Scores: make(map[string]float64)}
	for _, event := range c.span.GetEvents() {
		if event.GetName() != evaluated {
			continue
		}
		result := make(attributes)
		result.add(event.Attributes)
		name := result.text("gen_ai.evaluation.name")
		value, ok := result.number("gen_ai.evaluation.score.value")
		switch {
		case !ok:
			warnings = append(warnings, evaluated+": ignored a score without a number in gen_ai.evaluation.score.value")
		case name == "" || len(name) > control.MaxName:
			warnings = append(warnings, fmt.Sprintf("%s: ignored a score, gen_ai.evaluation.name has 1 to %d bytes", evaluated, control.MaxName))
		case name == storage.FeedbackScore:
			a.Feedback = &storage.Feedback{ID: int64(a.At) * 1000, Rating: value > 0, CreatedAt: a.At}
		case len(a.Scores) == control.MaxScores:
			warnings = append(warnings, fmt.Sprintf("%s: kept the first %d scores", evaluated, control.MaxScores))
		default:
			a.Scores[name] = value
		}
	}
	if len(a.Scores) == 0 && a.Feedback == nil {
		return nil, warnings
	}
	return a, warnings
}
