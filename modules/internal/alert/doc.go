// Package alert tells people what happens: rules are evaluated each minute, over windows of the
// records or over what others count, and messages about what they find are sent to channels.
//
// Whatever must survive a kill, and whatever nodes must agree on, is in the control log: an alert
// is an object whose id is a hash of rule, subject and window, so that the first node to commit
// it is the only one that tells; a message is a part of the object, and an attempt to send it
// begins with a commit that moves its next attempt into the future. A node that is killed in an
// attempt leaves the message to whoever comes by then, with the same id.
package alert
