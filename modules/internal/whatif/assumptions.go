package whatif

import (
	"fmt"
	"slices"

	"github.com/weirhq/weir/modules/internal/routing"
)

// Assumptions are what the amounts rest on, beside the records and the catalogue.
func (t *Trial) Assumptions() []string {
	list := []string{
		"Every target answers, within its limits: no call falls over to another one.",
		fmt.Sprintf("A model with the tokenizer of the recorded one counts and writes as many tokens. With another one, the input is %v to %v times and the output %v to %v times as long. ", leastInput, mostInput, leastOutput, mostOutput) +
			"Each maker has its own; Anthropic's of Opus 4.7, Sonnet 5 and later counts 1.3 times as much as its earlier one (platform.claude.com/docs/en/build-with-claude/token-counting), and OpenAI's of gpt-4o and later is another than that of gpt-4 (github.com/openai/tiktoken).",
	}
	if t.policy.CacheLife == "" {
		list = append(list, "A conversation whose turn before went to the same target finds the turn in the provider's cache, for an hour, or for as long as its marks say, 5 minutes or an hour, where the provider caches what requests mark.")
	} else {
		list = append(list, "A conversation whose turn before went to the same target finds the turn in the provider's cache, for an hour, or for "+t.policy.CacheLife+" where the provider caches what requests mark.")
	}
	if len(t.policy.Budgets) == 0 {
		list = append(list, "Budgets and limits refuse nothing: a policy may have budgets.")
	} else {
		list = append(list,
			"A budget sets aside what a call would have used. One that refuses sets aside what a call may use at most, and so refuses these calls, and others that come near to the limit.",
			"A call that follows a refused one is made all the same.",
			"A budget of models or providers counts a call at the target that most such calls would get.")
	}
	if t.policy.Name != "" {
		list = append(list, "A call of "+t.policy.Name+" went by the alias as it is now, unless the record has an arm that no alias has.")
	}
	for _, warning := range t.missing {
		list = append(list, "No call goes to a model that the organisation cannot call: "+warning+".")
	}
	for _, target := range t.targets {
		if target.Listed == nil {
			list = append(list, "The catalogue has no price for "+target.Name+": what goes there is unknown.")
		}
	}
	if t.policy.Strategy == routing.LeastBusy || t.policy.Strategy == routing.Fastest {
		list = append(list, "The targets get equal shares: how busy and how fast they would have been is not known.")
	}
	if slices.ContainsFunc(t.policy.Models, func(c *routing.Choice) bool { return len(c.Set) > 0 }) {
		list = append(list, "Of the parameters that a model sets, the service tier and the limits of the output count. The others, such as the effort, do not change how long its answers are.")
	}
	return list
}
