// Package spreadsheet writes CSV that people open in a spreadsheet.
package spreadsheet

import "strings"

// Text returns a text with an apostrophe in front if a spreadsheet would take the text for a
// formula (https://owasp.org/www-community/attacks/CSV_Injection).
func Text(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
