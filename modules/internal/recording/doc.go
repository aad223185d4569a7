// Package recording owns the life of a record from the beginning of its exchange
// to the end: its id, its versions in the journal, its price, and how it is
// reported. Whatever makes records uses it: the proxy, the gateway and the
// receiver of traces.
//
// # Replies without a provider
//
// What Weir answers itself is a LocalReply, in every lane: a refusal, the answer of the cache, an
// estimate. Exchange.Reply makes the call's record say so, and what it costs:
//
//	                    LocalReply          LocalReply
//	llmgateway    ──▶  Exchange.Reply  ──▶  Keep, Commit, Write, End, Release   call.reply
//	llmlog        ──▶  Exchange.Reply  ──▶  Write to capture.Writer             a refusal
//	                                   ──▶  Response, for transport.Interceptor a cached answer
//
// In a proxy, capture.Writer observes the reply like any answer, and the end of the exchange
// settles it. A new kind of reply is a constructor here, and one call in each lane: serveCall in
// llmgateway, ServeHTTP or intercept in llmlog.
package recording
