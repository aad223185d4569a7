package clientconfig

// https://docs.cursor.com/settings/api-keys
var cursor = &Client{
	Name: "cursor", Title: "Cursor",
	Steps: func(g Gateway) string {
		return `Cursor keeps these settings in no file that can be edited. In Cursor:

  1. Open Settings, Models, API Keys.
  2. OpenAI API Key: your Weir key.
  3. Override OpenAI Base URL: ` + g.Address + `/v1
  4. Add the models that you want to call, by their names in Weir.

Cursor calls from its own servers: the address must be reachable from the internet.
`
	},
}
