//go:build !race

package llmlog

const h3Races = false
