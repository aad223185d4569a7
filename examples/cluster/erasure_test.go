//go:build linux

package cluster

import (
	"encoding/binary"
	"errors"
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
	"syscall"
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
const quickly = `<merge_tree><old_parts_lifetime>1</old_parts_lifetime><max_cleanup_delay_period>1</max_cleanup_delay_period><cleanup_delay_period>1</cleanup_delay_period></merge_tree>
<users><default><password></password><access_management>1</access_management><networks><ip>::/0</ip></networks></default></users>
<profiles><default></default></profiles><quotas><default></default></quotas>`

// erasedPerson has made calls, one of them in a conversation with others, with a canary in their
// bodies and another one in its name.
type erasedPerson struct {
	body, name, what string
	calls            int
	acknowledged     bool
}

// Nodes of a shared store erase persons, while calls are recorded and nodes, Redis and ClickHouse
// are killed. Persons are erased right after their calls, which other nodes may not have written to the server
// yet. Nothing of the erased is in a file of the server or of a node, and every other call is there.
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
	askNode := func(n *node, key, method, path, body string, header ...string) (status int, answer gjson.Result) {
		r, err := http.NewRequestWithContext(t.Context(), method, n.address()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return http.StatusServiceUnavailable, answer
		}
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
	ask := func(key, method, path, body string, header ...string) (status int, answer gjson.Result) {
		return askNode(started[rand.N(nodes)], key, method, path, body, header...)
	}
	of := func(p *erasedPerson) string {
		return `{"request_response_rmt":{"properties":{"Tag":{"equals":"` + p.name[6:] + `"}}}}`
	}
	recorded := func(p *erasedPerson) int {
		_, got := ask("eraser", "POST", "/v1/request/query", `{"filter":`+of(p)+`,"limit":10}`)
		return len(got.Get("data").Array())
	}

	var mu sync.Mutex
	var persons []*erasedPerson
	erased := 0
	enough := func() bool { mu.Lock(); defer mu.Unlock(); return erased >= *erasures }
	_, begun := ask("k", "POST", "/v1/conversations", `{}`)
	conversation := begun.Get("id").Str
	say := func(text, rest string, header ...string) int {
		status, _ := ask("k", "POST", "/v1/responses", `{"model":"echo/echo-1","input":"I am `+text+`"`+rest+`}`, header...)
		return status
	}
	within := `,"conversation":"` + conversation + `"`
	if status := say("somebody who stays", within); status != http.StatusOK { // else the conversation goes with the first who is erased
		t.Fatal(status)
	}
	var group sync.WaitGroup
	for range 40 {
		group.Go(func() {
			for !enough() && t.Context().Err() == nil {
				newCanary := func() string { return fmt.Sprintf("c4nary%016x", rand.Uint64()) }
				p := &erasedPerson{body: newCanary(), name: newCanary(), what: []string{"", "content", "identity", "record"}[rand.N(4)]}
				for p.calls < 2 && !enough() {
					rest, user := within, "" // whom nobody names is in a conversation of the organisation
					if p.calls > 0 {
						rest, user = `,"store":false`, p.name
					}
					status := say(p.body, rest, "Service-User-Id", user, "Service-Property-Person", p.name, "Service-Property-Tag", p.name[6:])
					switch {
					case status == http.StatusOK:
						p.calls++
					case status == 0:
						p.what = "unknown" // one call more may have been recorded
					default: // ClickHouse or Redis is away
						time.Sleep(100 * time.Millisecond)
					}
					if p.what == "unknown" {
						break
					}
				}
				if p.calls < 2 {
					p.what = "unknown"
				}
				for deadline := time.Now().Add(time.Minute); p.what != "" && p.what != "unknown" && !p.acknowledged && time.Now().Before(deadline); {
					status, _ := ask("eraser", "POST", "/v1/erasures", `{"filter":`+of(p)+`,"what":"`+p.what+`"}`)
					if p.acknowledged = status == http.StatusAccepted; !p.acknowledged {
						time.Sleep(100 * time.Millisecond)
					}
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
			for after, more := "", true; more; {
				_, list := askNode(n, "eraser", "GET", "/v1/erasures?limit=200&after="+after, "")
				for _, e := range list.Get("data.items").Array() {
					if e.Get("state").Str != "done" {
						open = e.Raw
					}
				}
				after = list.Get("data.next").Str
				more = after != ""
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
		want := p.calls
		if p.acknowledged && p.what != "content" {
			want = 0 // of an identity, the property is gone
		}
		if p.what == "unknown" {
			continue
		}
		got := recorded(p)
		for deadline := time.Now().Add(30 * time.Second); (got < want || want == 0 && got > 0) && time.Now().Before(deadline); got = recorded(p) {
			time.Sleep(200 * time.Millisecond)
		}
		if got < want || want == 0 && got > 0 { // a call that was refused has a record, too
			t.Errorf("%s (%q): %d records, want %d", p.name, p.what, got, want)
		}
	}
	items := make(map[string]int)
	for after, more := "", true; more; {
		_, list := ask("k", "GET", "/v1/conversations/"+conversation+"/items?limit=100&after="+after, "")
		for _, text := range canary.FindAllString(list.Raw, -1) {
			items[text]++
		}
		after, more = list.Get("last_id").Str, list.Get("has_more").Bool()
	}
	talking := 0
	for _, p := range persons {
		got := items[p.body]
		if p.acknowledged && got > 0 {
			t.Errorf("%s (%q) has %d items in the conversation", p.body, p.what, got)
		}
		if got == 2 { // what the person said, and the answer: a turn is not added while ClickHouse is away
			talking++
		}
	}
	if talking == 0 {
		t.Error("nobody is in the conversation: is the search blind?")
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
			for text, gone := range map[string]bool{p.body: p.acknowledged, p.name: p.acknowledged && p.what != "content"} {
				file, there := found[text]
				if gone && there {
					leaks = append(leaks, p.what+": "+text+" in "+file)
				}
				if p.what == "" && !there {
					blind++
				}
			}
		}
		if blind > 0 {
			t.Errorf("%d texts of persons that were not erased are in no file: is the search blind?", blind)
		}
		if len(leaks) == 0 || blind > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d texts are left: %v", len(leaks), leaks[:min(len(leaks), 5)])
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
