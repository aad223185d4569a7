//go:build race

package llmlog

// Caddy's apps start in no order. Where http is before tls, what tls.Start sets
// is read by the first QUIC handshake without any synchronisation that the race
// detector could see.
const h3Races = true
