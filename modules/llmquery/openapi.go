package llmquery

import (
	_ "embed"

	"github.com/weirhq/weir/modules/internal/openapi"
)

//go:embed openapi.json
var openAPI []byte

var description = openapi.New(openAPI)

// serveOpenAPI answers GET /openapi.json.
func serveOpenAPI(c *call) error {
	description.ServeHTTP(c.w, c.r)
	return nil
}
