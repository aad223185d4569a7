// Package reconcile compares the bill of a provider with the calls that Weir recorded, and says
// where each difference comes from. For each day, model and service tier:
//
//	billed = recorded + differences
//
// in tokens and in dollars. A difference has one [Reason]. What fits no reason is Unknown: nothing
// is left out, and nothing is explained that the figures do not show.
package reconcile
