package storage

import "regexp"

// MaxErrorMessage bounds a record's ErrorMessage, in bytes.
const MaxErrorMessage = 500

// varyingWord matches the name of a user after the words that its group has before it, an address of
// email, and words with a digit in them: ids, times, counts and amounts. Between the parts of a number
// or a time may stand a mark, as in 1,234.50 and 20:15.
var varyingWord = regexp.MustCompile(`(for user ")[^"]+|[\pL0-9._%+-]+@[\pL0-9-]+(?:\.[\pL0-9-]+)+|[\pL_-]*[0-9][\pL0-9_-]*(?:[.,:][\pL_-]*[0-9][\pL0-9_-]*)*`)

// errorGroup returns a message with … in place of what differs between errors of one cause.
func errorGroup(message string) string {
	if message == "" { // as in most records
		return ""
	}
	return varyingWord.ReplaceAllString(message, "${1}…")
}
