package caddyfile_test

import (
	"strconv"
	"strings"
	"testing"
)

// Each mistake is told in one sentence that names the line and what to write
// instead. The line of the mistake ends in <<.
func TestMistakes(t *testing.T) {
	global := func(lines string) string { return "{\n\tllm {\n" + lines + "\n\t}\n}\n" }
	store := func(lines string) string { return global("store sqlite weir.db {\n" + lines + "\n}") }
	site := func(lines string) string {
		return "{\n\tllm {\n\t\tstore sqlite weir.db\n\t}\n}\n:8080 {\n" + lines + "\n}\n"
	}
	for name, tc := range map[string]struct{ source, want string }{
		"size without a number":     {store("max_journal <<"), "max_journal takes a size such as 512KiB or 8MiB, of 1 byte or more"},
		"size that is none":         {store("max_journal MiB <<"), "max_journal takes a size such as 512KiB or 8MiB, of 1 byte or more, not 'MiB'"},
		"unknown backend":           {global("store postgres postgres://x <<"), "store takes a backend out of sqlite, as in `store sqlite weir.db`"},
		"named unknown backend":     {global("store eu mongodb /tmp/x <<"), "store takes a backend out of sqlite"},
		"store without arguments":   {global("store <<"), "store takes a backend out of sqlite"},
		"store twice":               {global("store sqlite a.db\nstore sqlite b.db <<"), "store default is given twice; give one of them another name, as in `store eu sqlite eu.db`"},
		"duration with a blank":     {store("retention 90 days <<"), "retention takes a duration such as 30s, 12h or 90d, not '90 days'"},
		"duration that is none":     {store("retention soon <<"), "retention takes a duration such as 30s, 12h or 90d, not 'soon'"},
		"duration of 0":             {store("content_retention 0s <<"), "content_retention takes a duration such as 30s, 12h or 90d, not '0s'"},
		"option of a store":         {store("retentoin 90d <<"), "store has no option 'retentoin'; did you mean retention?"},
		"option of sqlite":          {store("journal_mode wal <<"), `sqlite has no option "journal_mode"`},
		"option of otlp":            {store("otlp http://localhost:4318 {\nbody <<\n}"), "otlp has no option 'body'; its options are content, header"},
		"flag with a value":         {store("sync on <<"), "sync takes no value, not even 'on'"},
		"mask of no kind":           {global("mask emial <<"), "mask emial: the kinds are key, card, iban, email, phone, national_id; a kind of your own needs `pattern` or `words`"},
		"pattern of mask":           {global("mask own { # <<\npattern (a\n}"), "mask own: pattern (a: error parsing regexp: missing closing )"},
		"option of mask":            {global("mask email {\nas hash <<\n}"), "as takes mask or pseudonym, not 'hash'"},
		"shared twice":              {store("shared fake a\nshared fake b <<"), "shared is given twice"},
		"separate store":            {global("store clickhouse 127.0.0.1 <<"), "store takes a backend out of sqlite, as in `store sqlite weir.db`, and before it a name if it is not the only store; clickhouse needs a binary of `xcaddy build --with github.com/weirhq/weir --with github.com/weirhq/weir/storage/clickhouse`"},
		"separate shared":           {store("shared redis redis://127.0.0.1 <<"), "shared takes a module, as in `shared redis redis://127.0.0.1:6379/0`; this binary has fake; redis needs a binary of `xcaddy build"},
		"shared nowhere":            {store("shared nowhere <<"), "shared takes a module, as in `shared redis redis://127.0.0.1:6379/0`; this binary has fake"},
		"option twice":              {store("retention 1d\nretention 2d <<"), "retention is given twice"},
		"kind of provider":          {global("provider lab telepathy <<"), "provider lab: 'telepathy' is no kind of provider; the kinds are anthropic, azure, bedrock"},
		"provider of no kind":       {global("provider gpt <<"), "provider gpt: 'gpt' is no kind of provider; the kinds are anthropic"},
		"provider without a name":   {global("provider <<"), "provider takes a label, and a kind if the label is none, as in `provider lab vllm`"},
		"provider twice":            {global("provider openai\nprovider openai <<"), "provider openai is given twice; give one of them a label of its own, as in `provider second openai`"},
		"option of a provider":      {global("provider openai {\napikey x <<\n}"), "provider openai has no option 'apikey'; did you mean api_key?"},
		"key of a provider":         {global("provider openai {\napi_key <<\n}"), "api_key takes one value, not 0"},
		"option of a kind":          {global("provider fake {\nregion eu-west-1\ncolour blue <<\n}"), "unrecognized fake option 'colour'"},
		"option of none":            {global("provider optionless {\nregion eu-west-1 <<\n}"), "provider optionless has no option 'region'; its options are api_key, base_url, models, tags, transport"},
		"label":                     {global("provider my/lab openai <<"), "provider my/lab: its label stands in lists of models like label/model: it can have no slash, comma or space"},
		"base URL":                  {global("provider openai { <<\nbase_url api.openai.com\n}"), `provider openai: base_url "api.openai.com": want an address like https://api.example.com/v1`},
		"alias without models":      {global("alias fast <<"), "alias takes a name and the models that it stands for, as in `alias fast openai/gpt-5-mini`"},
		"alias twice":               {global("alias fast a\nalias fast b <<"), "alias fast is given twice; name all of its models in one line"},
		"key without a secret":      {global("key <<"), "key takes a secret, as in `key {env.WEIR_KEY}`"},
		"scope":                     {global("key canary read-canary <<"), "key: what follows the secret are scopes, out of gateway, log, metrics, query"},
		"hash":                      {global("key sha256:canary <<"), "key: sha256: wants 64 hexadecimal digits, as `weir hash-key` prints them"},
		"bill without a provider":   {global("bill <<"), "bill takes a provider, or a name and a provider, as in `bill openai` or `bill eu openai`"},
		"credits":                   {global("org acme {\ncredits $50 <<\n}"), "credits takes US dollars as a plain decimal such as 50.00, not '$50'"},
		"org without a name":        {global("org { <<\nstore eu\n}"), "org takes one name"},
		"option of an org":          {global("org acme {\nquota 5 <<\n}"), "org has no option 'quota'; its options are alert, bill, budget, channel, credits, identity, key, limit, mask, provider, store"},
		"budget without a limit":    {global("budget research <<"), "budget takes a name, US dollars, and a window, as in `budget research 500 month`"},
		"limit of a budget":         {global("budget research $5 <<"), "budget research takes US dollars as a plain decimal such as 500.00, not '$5'"},
		"window of a budget":        {global("budget research 5 fortnight <<"), "budget research takes a window out of day, week, month, year, total, or a duration such as 24h, not 'fortnight'"},
		"limit without a quantity":  {global("limit chat 100 <<"), "limit takes a name, a number, what it counts, and a window, as in `limit chat 100 requests 1m`"},
		"number of a limit":         {global("limit chat 1.5 requests <<"), "limit chat takes a whole number from 1, not '1.5'"},
		"quantity of a limit":       {global("limit chat 100 dollars <<"), "limit chat counts tokens, input_tokens, output_tokens, uncached_tokens, concurrent, requests, not 'dollars'"},
		"window of a limit":         {global("limit chat 100 tokens often <<"), "limit chat takes a window out of day, week, month, year, total, or a duration such as 24h, not 'often'"},
		"part of a budget":          {global("budget research 5 {\nat 80 alert <<\n}"), "at takes a part of the limit from 1% to 100%, not '80'"},
		"stage of a budget":         {global("budget research 5 {\nat 80% refuse <<\n}"), "at 80% takes alert, or use and an alias, and at 100% also refuse, not 'refuse'"},
		"what a budget reserves":    {global("budget research 5 {\nreserve expected <<\n}"), "reserve is no option any longer: each budget sets aside the most that a call can use. Delete the line. The gateway fits calls into what is left by a lower limit of output tokens, and with `wait` a call waits for others to end"},
		"attribute of a budget":     {global("budget research 5 {\nfor cost 3 <<\n}"), "for takes user, session, project, key, provider, model or property.<name>, not 'cost'"},
		"login without a client":    {site("llm_ui {\nlogin https://login.example.com <<\n}"), "login takes an issuer, the id of the client there"},
		"identity of no kind":       {global("identity https://login.example.com <<"), "identity takes jwt and the URL of an issuer, as in `identity jwt https://login.example.com`"},
		"identity in the open":      {global("identity jwt http://login.example.com {\naudience weir\nscopes query\n} <<"), "identity jwt http://login.example.com: want the URL of an issuer"},
		"identity for everybody":    {global("identity jwt https://login.example.com {\nscopes query\n} <<"), "identity jwt https://login.example.com: audience is missing"},
		"identity without scopes":   {global("identity jwt https://login.example.com {\naudience weir\n} <<"), "identity jwt https://login.example.com: scopes are missing, out of gateway, log, metrics, query"},
		"scopes without a client":   {global("identity jwt https://login.example.com {\naudience weir\nscopes query\nclient_scopes offline_access\n} <<"), "identity jwt https://login.example.com: client_scopes without client_id: name the client of `weir login` at the issuer"},
		"scope of an identity":      {global("identity jwt https://login.example.com {\naudience weir\nscopes read\n} <<"), "identity jwt https://login.example.com: there is no scope read, only gateway, log, metrics, query"},
		"claim without values":      {global("identity jwt https://login.example.com {\naudience weir\nrequire sub <<\n}"), "require takes a claim and the values that are accepted"},
		"role without scopes":       {global("identity jwt https://login.example.com {\naudience weir\nrole groups admins <<\n}"), "role takes a claim, its value, and the scopes that it gives"},
		"option of llm":             {global("keys a b <<"), "llm has no option 'keys'; did you mean key?"},
		"llm twice":                 {"{\n\tllm {\n\t\tkey a\n\t}\n\tllm { <<\n\t\tkey b\n\t}\n}\n", "llm is configured already; put everything into one block"},
		"retries":                   {site("llm_gateway {\nretries many <<\n}"), "retries takes a whole number of 0 or more, not 'many'"},
		"origin without a scheme":   {site("llm_gateway {\ncors example.com <<\n}"), "cors example.com: want an origin like https://example.com, or *"},
		"bodies of 0":               {site("llm_gateway {\nmax_body 0 <<\n}"), "max_body takes a size such as 512KiB or 8MiB, of 1 byte or more, not '0'"},
		"bodies of 0 in a proxy":    {site("llm_proxy openai {\nmax_body 0 <<\n}"), "max_body takes a size such as 512KiB or 8MiB, of 1 byte or more, not '0'"},
		"another directive's":       {site("llm_otlp {\nmax_body 4MiB <<\n}"), "llm_otlp has no option 'max_body'; its options are mask, max_request, store"},
		"option of the queries":     {site("llm_query {\nlimit 5 <<\n}"), "llm_query has no option 'limit'; its options are allow_public, store, timeout"},
		"argument of the queries":   {site("llm_query eu <<"), "llm_query takes a matcher and a block of options, not 'eu'"},
		"option of echo":            {site("llm_echo {\ndelay 1s <<\n}"), "llm_echo has no option 'delay', and no others"},
		"credentials and a URL":     {site("llm_proxy openai https://api.openai.com {\ncredentials platform\n} <<"), "`credentials platform` goes to the address of a provider in the global option llm: name the provider alone, as in `llm_proxy openai`"},
		"credentials and upstreams": {site("llm_proxy openai {\ncredentials platform\nto 10.0.0.1:80\n} <<"), "`credentials platform` takes the address and the transport of the provider in the global option llm: leave out `to`, `dynamic` and `transport`"},
		"credentials of nobody":     {site("llm_proxy openai {\ncredentials mine <<\n}"), "credentials takes platform, not 'mine'"},
		"two providers":             {site("llm_log openai anthropic <<"), "llm_log takes one provider, not 'anthropic' too"},
		"what to omit":              {site("llm_log {\nomit bodies <<\n}"), "omit takes request or response, not 'bodies'"},
		"switch":                    {site("llm_log {\nstream_usage true <<\n}"), "stream_usage takes on or off, not 'true'"},
		"unknown store":             {site("llm_query { <<\nstore eu\n}"), "llm_query: no store is named eu; the global option llm has default"},
		"unknown org":               {site("llm_log { <<\norg acme\n}"), "llm_log: no org is named acme; the global option llm has none"},
		"unknown store of a proxy":  {site("llm_proxy openai { <<\nstore eu\n}"), "llm_proxy: no store is named eu; the global option llm has default"},
		"proxy without an address":  {site("llm_proxy azure <<"), "provider 'azure' has no default upstream: give its URL as a second argument"},
		"proxy with two addresses":  {site("llm_proxy https://a.example.com https://b.example.com <<"), "llm_proxy takes a provider, an URL, or both, as in `llm_proxy azure https://lab.openai.azure.com`"},
		"proxy of no known address": {site("llm_proxy opnai <<"), "provider 'opnai' has no default upstream: give its URL as a second argument"},
	} {
		t.Run(name, func(t *testing.T) {
			before, _, _ := strings.Cut(tc.source, " <<")
			line := 1 + strings.Count(before, "\n")
			got := strings.TrimSpace(adapt(t, strings.Replace(tc.source, " <<", "", 1)))
			_, got, _ = strings.Cut(got, "': ") // Caddy's "parsing caddyfile tokens for 'llm': "
			where := ", at Caddyfile:" + strconv.Itoa(line)
			if !strings.HasPrefix(got, tc.want) || !strings.HasSuffix(got, where) {
				t.Errorf("got\n%s\nwant\n%s … %s", got, tc.want, where)
			}
			if strings.Contains(got, "canary") {
				t.Error("a secret is repeated")
			}
		})
	}
}
