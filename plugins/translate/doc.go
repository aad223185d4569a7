// Package translate is the contract between the gateway and the vendors of models:
// one neutral request in, one stream of the Responses API out.
//
// On the way in, ParseRequest reads the body of POST /v1/responses into a Request
// (request.go, parse.go, input.go, conversation.go), Validate checks it against the
// documented schema, and Request.Apply does with each field what a vendor's Policy
// says (policy.go), so that none is lost in silence. A Provider makes the vendor's
// request of it. What several vendors need for that is here: Target.Post, levels of
// effort (effort.go), tools as functions (tools.go), one system prompt and messages
// that alternate (alternate.go).
//
// On the way out, a Provider reads the vendor's answer (answer.go) and passes what
// the model said to an Assembler. The Assembler owns what a legal stream is: ids,
// indices, what opens and closes (lifecycle.go), the items (output.go,
// whole_items.go, hosted_items.go) and the response object (response.go). Only
// events.go knows how events are written: an encoder of another API would be a file
// beside it.
package translate
