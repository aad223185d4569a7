// Package money decides what calls may cost, and what they have cost.
//
// Before a request is sent, a Bill sets aside the most that it can use. Afterwards the bill is
// charged what the provider has stated. This package says what is charged if the provider has
// not, in one table for every lane: the proxy, the gateway's native and translated calls, the
// rounds of tools, and the responses in sockets. The first row that fits holds. Ending.Rule is the
// table as code.
//
//	the answer                                        | budgets and credits count | the record, if nothing counts the call
//	--------------------------------------------------+---------------------------+---------------------------------------
//	refused: a status that is no success              | what is stated, else 0    | the same
//	failed: no connection, or reset before a header   | what is stated, else 0    | the same
//	complete, or its final usage came before a reset; |                           |
//	  usage and cost are stated                       | what is stated            | what is stated
//	  nothing is stated, and the request tells all    | what the request tells    | null
//	  usage or cost is not stated                     | what was set aside        | null
//	broken off by the provider, and the client has    |                           |
//	  nothing of it: another target may answer        | what is stated, else 0    | what is stated, else null
//	broken off by anyone, and it is not a stream      | what was set aside        | null
//	left before its header: by its client, or by      |                           |
//	  first_byte_timeout or a timeout of the proxy    |                           |
//	  not a stream                                    | what was set aside        | null
//	  a stream                                        | by its length             | null
//	a stream broken off by anyone, or cut by a budget |                           |
//	  it may have called a tool of the provider       | what was set aside        | null
//	  it has not                                      | by its length             | by its length
//	a batch                                           | what was set aside, until its results or its usage are known
//	a response in a socket                            |                           |
//	  the provider has not begun it, or has refused it| what is stated, else 0    | the same
//	  it has begun                                    | as a stream               | as a stream
//
// A request that is free, such as one that counts tokens, costs 0 however its answer ends.
//
// "What was set aside" is that of a quantity: where tokens are stated and the cost is not, a
// limit of tokens counts the tokens. A cost is not stated if something was billed beside the
// tokens whose quantity or price is unknown, such as a container or a search, or if the tier
// has no price.
//
// A request tells all if it has what the endpoint bills: pictures, documents, text to speak or to
// embed, and audio in formats whose bytes bound its length.
//
// "By its length" is the input that the provider has stated, else what was set aside for the
// input, and as output a token for four bytes that the model has written, or for each event if
// these are more. Where the stream does not show all that the model writes, or has not begun, it
// is at least what a model thinks in the time. It is never more than what was set aside, and never
// less than what is stated. If nothing counts the call, an input that is not stated counts by the
// bytes of the request, a token for four, unless the model has read more than its text.
//
// An answer may have called a tool of the provider if the request has one, and what has come does
// not show that none was called. In Responses and Messages, calls are items of the answer. In
// other APIs nothing shows them.
//
// A client that leaves ends the request to the provider at once. Few providers say whether they
// stop then, and none that it costs less if the answer is no stream.
package money
