// Package bills compares the bills of providers that a configuration names with the records of an
// organisation: once, and again and again for alerts.
package bills
