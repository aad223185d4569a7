package browser

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
)

// people are the people of an issuer by their names, each with the password `verysecure` and the
// group of the name, but for ada, who has none.
type people map[string]*storage.User

func (p people) GetUserByID(id string) *storage.User         { return p[id] }
func (p people) GetUserByUsername(name string) *storage.User { return p[name] }
func (people) ExampleClientID() string                       { return storage.ServiceUserID }

// groups adds the groups of people to what the issuer says at its UserInfo endpoint.
type groups struct{ *storage.Storage }

func (g groups) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	err := g.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin)
	if subject != "ada" {
		info.AppendClaims("groups", []string{subject})
	}
	return err
}

// loggedInAt is a site whose people log in at an issuer.
const loggedInAt = `{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		provider echo
		key the-agent-0123456789 gateway query
		identity jwt ISSUER {
			audience dashboard
			role groups viewer metrics
			role groups member query write
			role groups admin  query write admin
			members
		}
	}
}

http://127.0.0.1:{$WEIR_PORT}, http://127.0.0.2:{$WEIR_PORT} {
	llm_query
	llm_control
	llm_gateway
	llm_ui {
		login ISSUER dashboard the-secret-of-the-client
	}
}
`

// newIssued runs a Weir, and a provider of OpenID Connect (github.com/zitadel/oidc) of another
// site, which knows the dashboard of the Weir.
func newIssued(t *testing.T) (w *weir, issuer string) {
	t.Helper()
	requireBrowser(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer = "http://" + listener.Addr().String()
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(loggedInAt, "ISSUER", issuer)), 0o600); err != nil {
		t.Fatal(err)
	}
	w = newWeir(t, config)
	w.url = "http://127.0.0.2:" + w.port // an address of another site than the issuer's
	w.key = "the-agent-0123456789"
	all := people{}
	for _, name := range []string{"viewer", "member", "admin", "ada", "stranger"} {
		all[name] = &storage.User{ID: name, Username: name, Password: "verysecure", FirstName: "Ms", LastName: name, Email: name + "@example.com", EmailVerified: true}
	}
	storage.RegisterClients(storage.WebClient("dashboard", "the-secret-of-the-client", w.url+"/api/login/callback"))
	server := &http.Server{
		Handler:           exampleop.SetupServer(issuer, groups{storage.NewStorage(all)}, slog.New(slog.NewTextHandler(io.Discard, nil)), false),
		ReadHeaderTimeout: limit,
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return w, issuer
}

// logInAt opens the dashboard, and logs a person in at the page of the issuer.
func (w *weir) logInAt(issuer, name string) *tab {
	w.t.Helper()
	p := newTab(w)
	p.beside = issuer
	lead := func(script, there string) {
		w.t.Helper()
		p.checkPolicy()
		js[bool](p, "Boolean(setTimeout(() => "+script+"))")
		for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
			led, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+there+")")) // between documents, an error
			if err == nil && led {
				return
			}
			if time.Now().After(deadline) {
				w.t.Fatalf("%s does not lead to %s, but to %s\n%s", script, there, js[string](p, "location.href"), p.text())
			}
		}
	}
	p.open("?v=requests")
	lead(`document.querySelector(".login button[type=button]").click()`, `document.querySelector("#username")`)
	p.do(chromedp.SendKeys(chromedp.CSS("#username"), name), chromedp.SendKeys(chromedp.CSS("#password"), "verysecure"))
	lead(`document.querySelector("form").submit()`, `location.href.startsWith("`+w.url+`") && document.readyState === "complete"`)
	return p
}

// People log in at a provider of OpenID Connect, by its own page, with the role that the
// provider's claims give them, or that an administrator gives them on the page People. A viewer
// sees no content.
func TestPeopleLogInAtAnIssuer(t *testing.T) {
	t.Parallel()
	w, issuer := newIssued(t)
	const said = "what the team has said"
	w.post("/v1/responses", map[string]any{"model": "echo/echo-1", "input": said}, "Authorization: Bearer "+w.key)
	w.until(1)
	// sees opens the one call, and tells what of the dashboard the person sees.
	sees := func(p *tab) (content, administers bool) {
		t.Helper()
		p.open("?v=requests")
		p.until(`document.querySelector("tr[data-id]")`)
		p.open("?v=requests&id=" + p.ids()[0])
		p.until(`document.querySelector("dialog.drawer")`)
		p.settled()
		return strings.Contains(p.text(), said), js[bool](p, `document.querySelector("nav").innerText.includes("People")`)
	}
	var admin *tab
	for _, role := range []string{"viewer", "member", "admin"} {
		p := w.logInAt(issuer, role)
		if at := js[string](p, "location.search"); at != "?v=requests" {
			t.Errorf("the login of the %s leads back to %s", role, at)
		}
		content, administers := sees(p)
		if content != (role != "viewer") || administers != (role == "admin") {
			t.Errorf("a %s sees content: %v, and administers: %v", role, content, administers)
		}
		admin = p
	}
	for _, name := range []string{"ada", "stranger"} {
		if text := w.logInAt(issuer, name).text(); !strings.Contains(text, "no role") {
			t.Errorf("%s, who has no role, sees %s", name, text)
		}
	}
	admin.show("?v=people")
	admin.until(`document.querySelector("main").innerText.includes("nobody is a member yet")`)
	admin.do(chromedp.Click(chromedp.CSS("main button.primary")), chromedp.SendKeys(chromedp.CSS("dialog input[name=email]"), "Ada@example.com\r"))
	const row = `document.querySelector("[aria-label=People] tbody tr")`
	admin.until(row + `?.innerText.startsWith("ada@example.com")`)
	ada := w.logInAt(issuer, "ada")
	if content, administers := sees(ada); content || administers {
		t.Errorf("a reader sees content: %v, and administers: %v", content, administers)
	}
	admin.show("?v=keys")
	admin.show("?v=people")
	admin.until(row + `?.querySelector("a").title === "Ms ada"`)
	js[bool](admin, `((role) => (role.value = "owner", role.dispatchEvent(new Event("change", { bubbles: true }))))(`+row+`.querySelector("select"))`)
	for content := false; !content; {
		content, _ = sees(ada)
	}
	js[bool](admin, `(`+row+`.querySelector("button").click(), true)`)
	admin.until(row + `.querySelector("button.bad")`)
	js[bool](admin, `(`+row+`.querySelector("button.bad").click(), true)`)
	admin.until(`document.querySelector("main").innerText.includes("nobody is a member yet")`)
	ada.show("?v=overview")
	ada.until(`document.querySelector(".login")`)
}
