// Package translate is the contract between the gateway and the vendors of models:
// one neutral request in, one legal response out.
//
// On the way in, ParseRequest reads the body of POST /v1/responses into a Request
// (request.go, parse.go, input.go, conversation.go). Validate checks it against the
// documented schema. Request.Apply applies a vendor's Policy to each field
// (policy.go), so that none is dropped silently. A Provider turns it into the vendor's
// request. Several vendors need what is here: Target.Post, levels of effort
// (reasoning.go), tools as functions (tools.go), one system prompt and messages that
// alternate (alternate.go).
//
// On the way out, a Provider reads the vendor's answer (answer.go) and passes what
// the model said to an Assembler. The Assembler owns what a legal response is: ids,
// indices, what opens and closes (lifecycle.go), and the items (output.go,
// items.go). It emits events, which an Encoder
// writes (encoder.go): here that of Responses (events.go, response.go), in package
// inbound those of other APIs, whose clients' names of fields are in names.go.
package translate
