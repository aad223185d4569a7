// Package recording owns a record from the beginning of its exchange to the end: its id, its versions
// in the journal, its price, and its way to metrics and logs. The proxy, the gateway and the receiver
// of traces use it.
//
// # Replies without a provider
//
// An answer that Weir gives itself is a LocalReply, in every lane: a refusal, the answer of the cache,
// an estimate. Exchange.Reply sets what the record says of it. An answer costs nothing and no tokens:
//
//	                    LocalReply          LocalReply
//	llmgateway    ──▶  Exchange.Reply  ──▶  Keep, Commit, Write, End, Release   call.reply
//	llmlog        ──▶  Exchange.Reply  ──▶  Write to capture.Writer             exchange.reply
//	                                   ──▶  Response, for transport.Interceptor a cached answer
//
// In a proxy, capture.Writer observes the reply like any answer, and the end of the exchange
// settles it. A new kind of reply is a constructor here, and one call in each lane:
//
//   - llmgateway: call.serve, when begin has begun the record, for models, files and batches; or
//     serveCall beside cachedAnswer, if it depends on the model
//   - llmlog: ServeHTTP, before reserve. A reply that depends on the body, such as its model, belongs
//     into reserve after readBody, or into intercept if it depends on what the provider would get
package recording
