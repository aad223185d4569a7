// Package cache answers a request with the answer that a provider gave to an equal one: both
// lanes of calls ask it before they ask a provider. Requests are equal if the provider could not
// tell them apart; nothing is compared by meaning.
//
// The cache has no answers. Its table, in a file beside the journal, says which record has the
// answer to which request, and the journal has the answer. What is deleted, masked or damaged
// there is therefore gone here, too: the table has a keyed hash of each answer, and an answer
// with another one is a miss. What was given again lately is in memory for some seconds, while the
// journal removes nothing.
//
// Who finds no answer leads: equal calls of this process wait until the provider has answered
// the leader. Nodes do not wait for each other, and each has a table of its own.
package cache
