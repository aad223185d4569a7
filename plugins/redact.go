package plugins

import "strings"

// RedactURL returns the address as errors show it, without the user and the password before its host. It
// takes an address that cannot be parsed, too: a password may be why.
func RedactURL(address string) string {
	if end := strings.LastIndexByte(address, '@'); end >= 0 {
		return "…" + address[end:]
	}
	return address
}
