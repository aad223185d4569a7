package plugins

import (
	"regexp"
	"sync"
)

// accountIDs find what errors name of the account that a call was made with, one row a vendor. An id is what a
// group matches. Each row holds for the errors of all providers, because a gateway repeats the words of the
// vendor behind it. They are compiled for the first refusal.
var accountIDs = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"anthropic": regexp.MustCompile(`(?i)\borg(?:anization)?(?:'s)?(?: id)?[ :(]+(` + uuid + `)|\b(wrkspc_\w+)`),
		"azure": regexp.MustCompile(`(?i)\b(?:subscriptions|resourceGroups)/([\w.-]+)|\b([a-z0-9-]+)\.(?:openai|cognitiveservices|services\.ai|models\.ai)\.azure\.` +
			`|\b(?:principal|subscription|tenant|client|object)(?: id)?[ :'"]+(` + uuid + `)`),
		"bedrock": regexp.MustCompile(`\barn:aws[\w-]*:[\w-]*:[\w-]*:([0-9]{12}:[^\s"'\\,)]+)|(?i:\baccount(?: id)?[ :(]+([0-9]{12})\b)|\b((?:AKIA|ASIA|ABSK)[A-Z0-9]{12,})`),
		// The account fireworks is public.
		"fireworks": regexp.MustCompile(`\baccounts/fireworks\b|\baccounts/([\w-]+)|(?i:\baccount ([\w-]+) is suspended\b)`),
		"gemini": regexp.MustCompile(`\bprojects/([\w.:-]+)|(?i:\bproject(?:[_ ](?:number|id))?[ :#=]+([0-9]{6,}|[a-z][a-z-]*[0-9][a-z0-9-]*))|(?i:\bproject(?:[_ ]id)?:? ?['"` + "`" + `]([\w-]+))` +
			`|\bapi_key:([\w-]+)|\b(AIza[\w-]{20,})|([\w.-]+@[\w.-]+\.gserviceaccount\.com)`),
		"groq":       regexp.MustCompile(`\b(org_[A-Za-z0-9]{16,})`),
		"moonshotai": regexp.MustCompile(`<(ak-\w+)>`), // beside an organisation like OpenAI's
		"openai":     regexp.MustCompile(`\b(org-[A-Za-z0-9]{16,})|\b(proj_[A-Za-z0-9]{8,})|\b(user-[A-Za-z0-9]{16,})|\b(sk-[\w*-]{8,})`),
		"openrouter": regexp.MustCompile(`\b(user_[A-Za-z0-9]{16,})`),
		"vercel":     regexp.MustCompile(`\b(team_[A-Za-z0-9]{16,})`),
		"xai":        regexp.MustCompile(`(?i)\bteam(?:[_ ]id)?[ :/="]+([0-9a-f][0-9a-f-]{7,})|\bapi[_ ]key[_ ]id[ :/="]+([0-9a-f][0-9a-f-]{7,})|\b(xai-[\w*-]{4,})`),
	}
})

const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

// MaskAccount puts asterisks in the place of what an error names of the account that a call was made with:
// its organisation, project, team, subscription, resource or key. The text keeps its length.
func MaskAccount(text []byte) {
	for _, ids := range accountIDs() {
		for _, found := range ids.FindAllSubmatchIndex(text, -1) {
			for i := 2; i < len(found); i += 2 {
				for at := max(found[i], 0); at < found[i+1]; at++ {
					text[at] = '*'
				}
			}
		}
	}
}
