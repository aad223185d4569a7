package llmui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
)

//go:embed web
var web embed.FS

// contentTypes are the media types of the files, by extension: the system's table of media types
// may say anything.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
}

// file is a file of the pages, as it is sent.
type file struct {
	plain, gzipped    []byte
	contentType, etag string
}

// files are the files of the pages by their path, "/" is index.html.
var files = sync.OnceValue(func() map[string]*file {
	all := make(map[string]*file)
	err := fs.WalkDir(web, "web", func(name string, entry fs.DirEntry, err error) error {
		contentType := contentTypes[path.Ext(name)]
		if err != nil || entry.IsDir() || contentType == "" {
			return err
		}
		plain, err := web.ReadFile(name)
		if err != nil {
			return err
		}
		// Vendored files may be in a form that the minifier does not know.
		tight := between.ReplaceAll(margin.ReplaceAll(plain, []byte("\n")), []byte("$1$2"))
		if small, err := minifier().Bytes(path.Ext(name), tight); err == nil {
			plain = small
		}
		var gzipped bytes.Buffer
		w, _ := gzip.NewWriterLevel(&gzipped, gzip.BestCompression) // a level that there is
		_, _ = w.Write(plain)                                       // into memory
		_ = w.Close()
		sum := sha256.Sum256(plain)
		all[strings.TrimPrefix(name, "web")] = &file{plain, gzipped.Bytes(), contentType, `"` + hex.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	if err != nil {
		panic(err) // what is embedded can be read
	}
	all["/"] = all["/index.html"]
	return all
})

// margin is what stands before a line, and between a line break between two parts of a template,
// of which htm makes nothing.
var (
	margin  = regexp.MustCompile(`\n\s+`)
	between = regexp.MustCompile(`([>}])\n(<|\$\{)`)
)

// minifier makes what browsers load of our scripts and styles: without comments, margins
// (templates keep theirs, so these go first) and long names. Whoever reads or changes the
// files needs no build.
var minifier = sync.OnceValue(func() *minify.M {
	m := minify.New()
	m.AddFunc(".js", js.Minify)
	m.AddFunc(".css", css.Minify)
	return m
})

// securityPolicy is the Content-Security-Policy of the pages: their own scripts
// and nothing else, no markup out of text, no other origin. The import map is
// the one inline script, known by its hash.
var securityPolicy = sync.OnceValue(func() string {
	_, rest, _ := bytes.Cut(files()["/"].plain, []byte(`<script type="importmap">`))
	imports, _, _ := bytes.Cut(rest, []byte("</script>"))
	sum := sha256.Sum256(imports)
	return "default-src 'none'; script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
		"style-src 'self'; img-src 'self' data:; media-src data:; connect-src 'self'; base-uri 'none'; form-action 'self'; " +
		"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
})

// serve answers with the file. Browsers ask again whether it has changed, so
// that an upgrade is in force with the next visit.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	header.Set("ETag", f.etag)
	header.Set("Content-Security-Policy", securityPolicy())
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	if r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		body = f.gzipped
	}
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // the client may be gone
}
