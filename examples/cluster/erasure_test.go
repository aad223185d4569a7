//go:build linux

package cluster

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
)

var erasures = flag.Int("erasures", 0, "how many persons are erased; 15 take some minutes, because the server replaces its files by and by")

// erasingFile is a node of a shared store, which erases.
const erasingFile = `{
	admin off
	persist_config off
	llm {
		store clickhouse {$CLICKHOUSE} {
			journal {$WEIR_DATA}
			retention 24h
			shared redis {$REDIS_URL}
		}
		secret the-same
		provider echo
		key k
		key eraser admin query
	}
}
http://:{$WEIR_PORT} {
	bind 127.0.0.1
	llm_gateway
	llm_control
	llm_query
	llm_health
}
`

// quickly has the server remove the files that it has replaced after a second.
const quickly = `<merge_tree><old_parts_lifetime>1</old_parts_lifetime></merge_tree>
<users><default><password></password><access_management>1</access_management><networks><ip>::/0</ip></networks></default></users>
<profiles><default></default></profiles><quotas><default></default></quotas>`

// erasedPerson has made calls, with a canary in their bodies and in its name.
type erasedPerson struct {
	canary, what string
	ids          []string
	acknowledged bool
}

// Nodes of a shared store erase persons, while calls are recorded and nodes, Redis and ClickHouse
// are killed. Nothing of the erased is in a file of the server or of a node, and every other call
// is there.
func TestErasuresAtThreeNodes(t *testing.T) {
	if *erasures == 0 {
		t.Skip("takes minutes: -erasures 15")
	}
	server := clickhousetest.Start(t, quickly)
	c, started := sharing(t, erasingFile, nodes, "CLICKHOUSE="+server.Addr)
	c.clickhouse = server
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte(erasingFile), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(key, method, path, body string, header ...string) (status int, answer gjson.Result) {
		r, err := http.NewRequestWithContext(t.Context(), method, started[rand.N(nodes)].address()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, answer
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, answer
		}
		return resp.StatusCode, gjson.ParseBytes(text)
	}
	of := func(p *erasedPerson) string {
		return `{"request_response_rmt":{"properties":{"Tag":{"equals":"` + p.canary[6:] + `"}}}}`
	}
	recorded := func(p *erasedPerson) int {
		_, got := ask("eraser", "POST", "/v1/request/query", `{"filter":`+of(p)+`,"limit":10}`)
		return len(got.Get("data").Array())
	}

	var mu sync.Mutex
	var persons []*erasedPerson
	erased := 0
	enough := func() bool { mu.Lock(); defer mu.Unlock(); return erased >= *erasures }
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			for !enough() && t.Context().Err() == nil {
				p := &erasedPerson{canary: fmt.Sprintf("c4nary%016x", rand.Uint64()), what: []string{"", "content", "identity", "record"}[rand.N(4)]}
				for len(p.ids) < 2 {
					status, got := ask("k", "POST", "/v1/responses", `{"model":"echo/echo-1","store":false,"input":"I am `+p.canary+`"}`,
						"Service-User-Id", p.canary, "Service-Property-Person", p.canary, "Service-Property-Tag", p.canary[6:])
					if status == http.StatusOK {
						p.ids = append(p.ids, got.Get("id").Str)
					} else {
						p.what = "unknown" // one call more may have been recorded
						break
					}
				}
				for deadline := time.Now().Add(time.Minute); p.what != "" && p.what != "unknown" && recorded(p) < 2 && time.Now().Before(deadline); {
					time.Sleep(50 * time.Millisecond)
				}
				for deadline := time.Now().Add(time.Minute); p.what != "" && p.what != "unknown" && !p.acknowledged && time.Now().Before(deadline); {
					status, _ := ask("eraser", "POST", "/v1/erasures", `{"filter":`+of(p)+`,"what":"`+p.what+`"}`)
					p.acknowledged = status == http.StatusAccepted
				}
				mu.Lock()
				persons = append(persons, p)
				if p.acknowledged {
					erased++
				}
				mu.Unlock()
			}
		})
	}
	killed := 0
	for ; !enough() && t.Context().Err() == nil; killed++ {
		time.Sleep(2*time.Second + rand.N(2*time.Second))
		switch n := started[rand.N(nodes)]; killed % 3 {
		case 0:
			_ = n.process.Process.Kill()
			_, _ = n.process.Process.Wait()
			n.process = c.run(config, "WEIR_PORT="+n.port, "WEIR_DATA="+n.dir, "XDG_DATA_HOME="+n.dir)
		case 1:
			c.killRedis()
		default:
			c.killClickHouse()
		}
	}
	group.Wait()
	for _, n := range started {
		c.wait(n.address() + "/health/ready")
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		open := ""
		for _, n := range started { // each alone knows of the erasures that it took
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.address()+"/v1/erasures?limit=200", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer eraser")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			for _, e := range gjson.GetBytes(text, "data.items").Array() {
				if e.Get("state").Str != "done" {
					open = e.Raw
				}
			}
		}
		if open == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("an erasure does not end: %s", open)
		}
	}
	for _, p := range persons {
		want := len(p.ids)
		if p.acknowledged && p.what != "content" {
			want = 0 // of an identity, the property is gone
		}
		if p.what == "unknown" {
			continue
		}
		got := recorded(p)
		for deadline := time.Now().Add(30 * time.Second); got != want && time.Now().Before(deadline); got = recorded(p) {
			time.Sleep(200 * time.Millisecond)
		}
		if got != want {
			t.Errorf("%s (%q): %d records, want %d", p.canary, p.what, got, want)
		}
	}
	var dirs []string
	for _, n := range started {
		dirs = append(dirs, n.dir)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) { // the server removes replaced files by and by
		found := map[string]string{}
		for _, dir := range append(dirs, server.Dir()) {
			canaries(t, dir, found)
		}
		leaks, blind := []string{}, 0
		for _, p := range persons {
			file, there := found[p.canary]
			if p.acknowledged && p.what != "content" && there {
				leaks = append(leaks, p.canary+" in "+file)
			}
			if p.what == "" && !there {
				blind++
			}
		}
		if blind > 0 {
			t.Errorf("%d persons that were not erased are in no file: is the search blind?", blind)
		}
		if len(leaks) == 0 || blind > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d persons are left: %v", len(leaks), leaks[:min(len(leaks), 5)])
			break
		}
	}
	t.Logf("%d persons, %d erased, %d kills", len(persons), erased, killed)
}

var canary = regexp.MustCompile(`c4nary[0-9a-f]{16}`)

// canaries notes which canaries the files below a folder have, as they are and in the compressed
// blocks of ClickHouse (https://clickhouse.com/docs/native-protocol/compression).
func canaries(t *testing.T, dir string, found map[string]string) {
	t.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // files go meanwhile
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		look := func(text []byte) {
			for _, c := range canary.FindAll(text, -1) {
				found[string(c)] = path
			}
		}
		look(text)
		if filepath.Ext(path) != ".bin" {
			return nil
		}
		const checksum, head = 16, 9 // the method, the size with the head, and the size of the text
		for len(text) > checksum+head {
			method, size, plain := text[checksum], binary.LittleEndian.Uint32(text[checksum+1:]), binary.LittleEndian.Uint32(text[checksum+5:])
			if size < head || int(size) > len(text)-checksum {
				break
			}
			block := text[checksum+head : checksum+size]
			switch method {
			case 0x82:
				out := make([]byte, plain)
				if n, err := lz4.UncompressBlock(block, out); err == nil {
					look(out[:n])
				}
			case 0x90:
				if out, err := d.DecodeAll(block, nil); err == nil {
					look(out)
				}
			default:
				look(block)
			}
			text = text[checksum+size:]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
