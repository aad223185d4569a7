package llmadmin

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage/journal"
)

// Report is the answer of /llm/doctor.
type Report struct {
	// Version and Commit are the version and the commit of the running binary.
	Version  string    `json:"version"`
	Commit   string    `json:"commit"`
	Findings []Finding `json:"findings"`
}

// Finding is one thing that was looked at.
type Finding struct {
	Level Level  `json:"level"`
	About string `json:"about"`
	Found string `json:"found"`
	// Fix is what to do, "" if nothing is wrong.
	Fix string `json:"fix,omitempty"`
}

// Level is how bad a finding is.
type Level string

// The levels. An error loses records or calls now or soon; a warning does so when
// something else happens.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Error   Level = "error"
)

// doctorTimeout bounds how long a provider may take to answer.
const doctorTimeout = 5 * time.Second

func doctor(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), doctorTimeout)
	defer cancel()
	report := Report{Version: llmapp.Version(), Commit: llmapp.Commit()}
	report.Findings = append(report.Findings, lookAtStores(ctx)...)
	active := caddy.ActiveContext()
	if app, err := active.AppIfConfigured("llm"); err == nil {
		report.Findings = append(report.Findings, lookAtPrices(app.(*llmapp.App).Catalog(), app.(*llmapp.App).Prices().Unused(), time.Now()))
		report.Findings = append(report.Findings, lookAtProviders(ctx, app.(*llmapp.App))...)
	}
	if app, err := active.AppIfConfigured("http"); err == nil {
		report.Findings = append(report.Findings, lookAtUpstreams(ctx, app.(*caddyhttp.App))...)
		if p := currentProcess(); p.Dashboard && !p.Control {
			report.Findings = append(report.Findings, Finding{Warning, "administration", "no site has llm_control: keys, budgets and people cannot be changed by commands or programs", "add the directive `llm_control` beside `llm_ui`"})
		}
		if app.(*caddyhttp.App).GracePeriod == 0 {
			report.Findings = append(report.Findings, Finding{Warning, "stopping", "a provider that hangs keeps Weir from ending", "set the global option grace_period, such as 30s"})
		}
	}
	report.Findings = append(report.Findings, lookAtCertificates(ctx, active)...)
	report.Findings = append(report.Findings, lookAtSpans(active)...)
	return apierror.WriteJSON(w, http.StatusOK, report)
}

func lookAtStores(ctx context.Context) (all []Finding) {
	healths := make(map[string]stores.Health)
	for _, h := range stores.CheckHealth(ctx) {
		healths[h.Store] = h
	}
	for _, store := range stores.InUse() {
		about, h := "store "+store.Name(), healths[store.Name()]
		if h.Journal != nil {
			fix := "make room, or give the user of Weir the directory of the journal"
			if errors.Is(h.Journal, journal.ErrFull) {
				fix = "repair the database; until then a larger max_journal takes more records"
			}
			all = append(all, Finding{Error, about, "records are being lost: " + h.Journal.Error(), fix})
		}
		j := store.Opened()
		if j == nil {
			continue
		}
		s, i := j.Status(), j.Integrity()
		switch {
		case h.Backend != nil:
			all = append(all, Finding{Error, about, fmt.Sprintf("%d records wait in the journal: %v", s.PendingRecords, h.Backend), "nothing is lost until the journal is full (max_journal); repair the database, or end the program that locks it"})
		case h.Journal == nil:
			all = append(all, Finding{Level: OK, About: about, Found: fmt.Sprintf("takes records; %d wait, %d are recorded", s.PendingRecords, i.Recorded)})
		}
		for _, l := range i.Losses {
			all = append(all, Finding{
				Warning, about, fmt.Sprintf("lost %d exchanges (%d entries) until %s: %s", l.Exchanges, l.Count, time.UnixMilli(int64(l.To)).UTC().Format(time.DateTime), l.Reason),
				"docs/operations.md#reconciliation says what the reason means; the reconciliation keeps it",
			})
		}
		if n := i.Unaccounted(); n != 0 {
			all = append(all, Finding{Error, about, fmt.Sprintf("%d exchanges are neither recorded, nor waiting, in flight or lost", n), "please report it: this is a defect of Weir"})
		}
		for _, d := range i.Damage {
			all = append(all, Finding{
				Warning, about, fmt.Sprintf("%s was found at %s: it %s", d.File, time.UnixMilli(int64(d.At)).UTC().Format(time.DateTime), d.Found),
				"docs/operations.md#files-that-are-gone says what to do; the reconciliation keeps it",
			})
		}
		if _, err := store.ControlFile(); err != nil {
			all = append(all, Finding{Error, about, "calls that need keys, members or budgets made while Weir runs are refused: " + err.Error(), "docs/operations.md#files-that-are-gone says how to bring them back"})
		}
		if _, err := store.Credits(); err != nil {
			all = append(all, Finding{Error, about, "calls that credits pay for are refused: " + err.Error(), "docs/operations.md#the-credits says how to bring them back"})
		}
		all = append(all, room(store)...)
	}
	if len(all) == 0 {
		all = append(all, Finding{Error, "stores", "none is open", "use llm_log, llm_proxy, llm_gateway, llm_otlp or llm_query on a site"})
	}
	return all
}

// room looks at the disk of a store.
func room(store *stores.Store) []Finding {
	free, size, err := disk.Space(store.Dir())
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	f := Finding{Level: OK, About: "disk of the store " + store.Name()}
	if err != nil {
		f.Level, f.Found, f.Fix = Error, err.Error(), "make "+store.Dir()+" a directory that the user of Weir can write"
		return []Finding{f}
	}
	f.Found = fmt.Sprintf("%d MB of %d MB are free", free/1e6, size/1e6)
	switch {
	case free < 256<<20:
		f.Level = Error
	case free < size/10:
		f.Level = Warning
	}
	if f.Level != OK {
		f.Fix = "make room, or set a shorter content_retention: bodies take most of it"
	}
	return []Finding{f}
}

// oldPrices is the age from which the catalogue is likely to lack new models and prices.
const oldPrices = 60 * 24 * time.Hour

func lookAtPrices(prices *catalog.Catalog, unused error, now time.Time) Finding {
	age := now.Sub(prices.Date())
	f := Finding{Level: OK, About: "prices", Found: fmt.Sprintf("are of %s; age in days: %d", prices.Version(), age/(24*time.Hour))}
	if unused != nil {
		f.Level, f.Found, f.Fix = Error, f.Found+", because the installed catalogue is not used: "+unused.Error(), "run `weir catalog update`: docs/catalog.md"
	} else if age > oldPrices {
		f.Level, f.Fix = Warning, "upgrade Weir, run `weir catalog update`, or put what has changed into the file of the option `catalog`: docs/catalog.md"
	}
	return f
}

// lookAtProviders asks each provider that the gateway can call for any answer, all at
// once.
func lookAtProviders(ctx context.Context, app *llmapp.App) (all []Finding) {
	for _, a := range app.Accounts().Keyless("") {
		all = append(all, Finding{Warning, "provider " + a.Label, a.KeyEnv() + " is not set: calls fail, except those of organisations with credentials of their own", fmt.Sprintf("set %s where Weir is started, or api_key", a.KeyEnv())})
	}
	accounts := app.Accounts().Of("")
	found := make([][]Finding, len(accounts))
	var wg sync.WaitGroup
	for i, a := range accounts {
		wg.Go(func() { found[i] = reach(ctx, a) })
	}
	wg.Wait()
	for _, f := range found {
		all = append(all, f...)
	}
	return all
}

// maxSkew is how far the clock may be from a provider's: signatures and certificates
// depend on it, and so do the times of records.
const maxSkew = 30 * time.Second

func reach(ctx context.Context, a *providers.Account) []Finding {
	if a.BaseURL == "" {
		return nil // it answers by itself
	}
	f := Finding{Level: OK, About: "provider " + a.Label}
	begin := time.Now()
	response, err := a.Probe(ctx)
	if err != nil {
		f.Level, f.Found, f.Fix = Error, fmt.Sprintf("%s does not answer: %v", plugins.RedactURL(a.BaseURL), err), "look at DNS, the firewall and the provider's status; calls of aliases go to other providers meanwhile"
		return []Finding{f}
	}
	response.Body.Close()
	f.Found = fmt.Sprintf("answers in %d ms", time.Since(begin).Milliseconds())
	at, err := http.ParseTime(response.Header.Get("Date"))
	if skew := time.Since(at).Abs(); err == nil && skew > maxSkew {
		return []Finding{f, {Warning, "clock", fmt.Sprintf("differs by %s from that of the provider %s", skew.Round(time.Second), a.Label), "run an NTP client, such as systemd-timesyncd"}}
	}
	return []Finding{f}
}

// lookAtUpstreams connects to each address to which sites forward recorded calls, all at
// once.
func lookAtUpstreams(ctx context.Context, app *caddyhttp.App) []Finding {
	addresses := make(map[string]Finding)
	for _, server := range app.Servers {
		for _, dial := range upstreams(server) {
			addresses[dial] = Finding{}
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for dial := range maps.Clone(addresses) {
		wg.Go(func() {
			f := connect(ctx, dial)
			mu.Lock()
			defer mu.Unlock()
			addresses[dial] = f
		})
	}
	wg.Wait()
	var all []Finding
	for _, dial := range slices.Sorted(maps.Keys(addresses)) {
		all = append(all, addresses[dial])
	}
	return all
}

// upstreams are the fixed addresses of the proxies behind handlers that record.
func upstreams(server *caddyhttp.Server) (found []string) {
	recorded := false
	for handler := range handlers(server) {
		recorded = recorded || moduleID(handler) == "http.handlers.llm_log"
		if forward, ok := handler.(interface{ Proxy() *reverseproxy.Handler }); ok { // llm_forward
			handler = forward.Proxy()
		}
		if proxy, ok := handler.(*reverseproxy.Handler); ok && recorded {
			for _, u := range proxy.Upstreams {
				if !strings.Contains(u.Dial, "{") {
					found = append(found, u.Dial)
				}
			}
		}
	}
	return found
}

func connect(ctx context.Context, dial string) Finding {
	f := Finding{Level: OK, About: "upstream " + dial, Found: "takes connections"}
	address, err := caddy.ParseNetworkAddressWithDefaults(dial, "tcp", 0)
	if err == nil {
		var conn net.Conn
		if conn, err = new(net.Dialer).DialContext(ctx, address.Network, address.JoinHostPort(0)); err == nil {
			conn.Close()
			return f
		}
	}
	f.Level, f.Found, f.Fix = Error, err.Error(), "look at DNS, the firewall and the provider's status: its calls fail"
	return f
}

// lookAtCertificates looks at the certificates that Caddy manages and uses. Caddy renews a
// certificate when a third of its life is left.
func lookAtCertificates(ctx context.Context, active caddy.Context) (all []Finding) {
	files, err := active.Storage().List(ctx, "certificates", true)
	if err != nil {
		return nil // there are none
	}
	for _, file := range files {
		if !strings.HasSuffix(file, ".crt") {
			continue
		}
		name := strings.TrimSuffix(path.Base(file), ".crt")
		text, err := active.Storage().Load(ctx, file)
		block, _ := pem.Decode(text)
		if err != nil || block == nil || len(caddytls.AllMatchingCertificates(name)) == 0 {
			continue // nobody uses it
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		f := Finding{Level: OK, About: "certificate of " + name, Found: "is valid until " + certificate.NotAfter.UTC().Format(time.DateTime)}
		life, left := certificate.NotAfter.Sub(certificate.NotBefore), time.Until(certificate.NotAfter)
		if left < life/6 {
			f.Level, f.Fix = Warning, "its renewal fails: look for tls.renew in the log, and whether ports 80 and 443 can be reached"
		}
		if left <= 0 {
			f.Level = Error
		}
		all = append(all, f)
	}
	return all
}
