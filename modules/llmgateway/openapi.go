package llmgateway

import (
	_ "embed"

	"github.com/weirhq/weir/modules/internal/openapi"
)

// openAPIPath is that of the description of the gateway's endpoints.
const openAPIPath = "/v1/openapi.json"

//go:embed openapi.json
var openAPI []byte

var description = openapi.New(openAPI)
