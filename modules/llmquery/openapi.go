package llmquery

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"net/http"
	"time"
)

// openAPI describes the endpoints in OpenAPI 3.1.
//
//go:embed openapi.json
var openAPI []byte

var openAPITag = fmt.Sprintf(`"%x"`, sha256.Sum256(openAPI))

// serveOpenAPI answers GET /openapi.json.
func serveOpenAPI(c *call) error {
	header := c.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "public, max-age=3600")
	header.Set("Etag", openAPITag)
	http.ServeContent(c.w, c.r, "", time.Time{}, bytes.NewReader(openAPI))
	return nil
}
