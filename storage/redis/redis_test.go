package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/testkit/creditstest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

// server is a Redis of the test.
type server struct {
	t       testing.TB
	dir     string
	socket  string
	process *exec.Cmd
}

// start runs redis-server, which keeps what it acknowledges when it is killed.
func start(t testing.TB) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REQUIRE_REDIS") != "" {
			t.Fatal(err)
		}
		t.Skip("redis-server is not installed")
	}
	dir, err := os.MkdirTemp("", "weir-redis") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, dir: dir, socket: dir + "/s"}
	t.Cleanup(func() {
		s.kill()
		_ = os.RemoveAll(dir)
	})
	s.run()
	return s
}

func (s *server) run() {
	s.t.Helper()
	s.process = exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--dir", s.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	out, err := s.process.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "ready to accept connections") {
			go func() {
				for lines.Scan() {
				}
			}()
			return
		}
	}
	s.t.Fatal("redis-server does not start")
}

// kill is the death of the server.
func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// pause lets the server hang, or go on.
func (s *server) pause(on bool) {
	signal := syscall.SIGCONT
	if on {
		signal = syscall.SIGSTOP
	}
	do(s.t, s.process.Process.Signal(signal))
}

var stores atomic.Int64

func (s *server) options() Options {
	return Options{URL: "unix://" + s.socket, Store: fmt.Sprint("s", stores.Add(1)), File: filepath.Join(s.t.TempDir(), "charges"), Timeout: 5 * time.Second, Logger: zap.NewNop()}
}

func open(t testing.TB, o Options) *Ledger {
	t.Helper()
	return openState(t, o).ledger
}

func openState(t testing.TB, o Options) *State {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	eventually(t, func() bool { return s.ledger.renew(t.Context()) == nil && s.client.answers.Load() })
	return s
}

// eventually waits for what a node does by itself.
func eventually(t testing.TB, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it has not come about within 30 seconds")
		}
	}
}

func TestContract(t *testing.T) {
	s := start(t)
	creditstest.Run(t, func() creditstest.Place {
		o := s.options()
		o.Lease = 5 * time.Second
		return creditstest.Place{
			Open: func() (credits.Ledger, error) {
				n, err := Open(o)
				if err != nil {
					return nil, err
				}
				return node{n.ledger, n}, n.ledger.renew(context.Background())
			},
			Kill: func(l credits.Ledger) { s.die(l.(node).Ledger) },
		}
	})
}

// node is a ledger that closes all of its node.
type node struct {
	*Ledger
	state *State
}

func (n node) Close(ctx context.Context) error { return n.state.Close(ctx) }

// die is the death of a node, and the end of its lease.
func (s *server) die(l *Ledger) {
	l.stop()
	<-l.done
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	loseLease(s.t, l)
}

func loseLease(t testing.TB, l *Ledger) {
	t.Helper()
	do(t, l.client.do(context.Background(), func(ctx context.Context, server rueidis.Client) error {
		return server.Do(ctx, server.B().Del().Key(l.client.key("lease:"+l.node)).Build()).Error()
	}))
}

// acme are the credits of an organisation.
var acme = credits.Account{Org: "acme"}

// balance is what a ledger says of acme.
func balance(t testing.TB, l credits.Ledger) credits.Balance {
	t.Helper()
	b, err := l.Balance(t.Context(), credits.Hold{Account: acme})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func of(amount plugins.Nanodollars) credits.Reservation {
	return credits.Reservation{ID: uuid.New(), Org: "acme", Amount: amount, Holds: []credits.Hold{{Account: acme}}}
}

func do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Nodes together reserve no more than there is, and what a dead one had reserved ends
// with its lease.
func TestNodes(t *testing.T) {
	o := start(t).options()
	nodes := []*Ledger{open(t, o), open(t, o), open(t, o)}
	do(t, nodes[0].Grant(t.Context(), "acme", 1000))
	var group sync.WaitGroup
	var reserved atomic.Int64
	for _, l := range nodes {
		for range 10 {
			group.Go(func() {
				for range 10 {
					switch err := l.Reserve(t.Context(), of(7)); {
					case err == nil:
						reserved.Add(7)
					case !errors.Is(err, credits.ErrInsufficient):
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	if want := int64(1000 / 7 * 7); reserved.Load() != want {
		t.Errorf("%d are reserved, want %d", reserved.Load(), want)
	}
	for _, l := range nodes[:2] { // they die
		l.stop()
		<-l.done
		loseLease(t, l)
	}
	do(t, nodes[2].renew(t.Context()))
	own := plugins.Nanodollars(len(nodes[2].unreleased) * 7)
	if b := balance(t, nodes[2]); b.Reserved != own {
		t.Errorf("got %+v, want %s reserved", b, own)
	}
}

// A node whose lease ended while it was cut off charges what its calls have cost, once.
func TestChargeAfterTheLease(t *testing.T) {
	s := start(t)
	o := s.options()
	cutOff, other := open(t, o), open(t, o)
	do(t, cutOff.Grant(t.Context(), "acme", 100))
	r := of(60)
	r.Lost = 50
	do(t, cutOff.Reserve(t.Context(), r))
	do(t, cutOff.Charge(t.Context(), r, 10))
	cutOff.stop()
	<-cutOff.done
	loseLease(t, cutOff)
	do(t, other.expire(t.Context(), cutOff.node))
	if b := balance(t, other); b.Spent != 50 || b.Reserved != 0 {
		t.Errorf("without the lease: %+v", b)
	}
	do(t, cutOff.Charge(t.Context(), r, 25))
	do(t, cutOff.Charge(t.Context(), r, 25))
	do(t, cutOff.Release(t.Context(), r))
	if b := balance(t, other); b.Spent != 25 || b.Reserved != 0 {
		t.Errorf("after its charge: %+v", b)
	}
}

// A budget without an end counts so many values and no more, and one of which nothing is spent
// makes room.
func TestValuesAreBounded(t *testing.T) {
	l := open(t, start(t).options())
	l.maxValues = 1
	of := func(value string) credits.Reservation {
		return credits.Reservation{ID: uuid.New(), Org: "acme", Amount: 1, Holds: []credits.Hold{{Account: credits.Account{Org: "acme", Budget: "run", Value: value}, Limit: 100}}}
	}
	a, b := of("a"), of("b")
	do(t, l.Reserve(t.Context(), a))
	do(t, l.Reserve(t.Context(), b)) // there is room for the two fields of one value
	if err := l.Reserve(t.Context(), of("c")); !errors.Is(err, credits.ErrFull) {
		t.Errorf("one more value: %v", err)
	}
	do(t, l.Charge(t.Context(), a, 1))
	do(t, l.Release(t.Context(), a))
	do(t, l.Release(t.Context(), b))
	if err := l.Reserve(t.Context(), of("c")); !errors.Is(err, credits.ErrFull) {
		t.Errorf("a value that has spent something made room: %v", err)
	}
	do(t, l.Reserve(t.Context(), of("a")))
}

// What a killed process has left is settled by the next one in its directory, and by no other:
// not before its lease has ended, also if another node has spent the most that its calls can
// have cost, and with the charges that Redis did not take, also of calls within the allowance.
func TestSettle(t *testing.T) {
	s := start(t)
	o := s.options()
	o.Allowance = 50
	other := s.options()
	other.Store = o.Store
	l, beside := open(t, o), open(t, other)
	do(t, l.Grant(t.Context(), "acme", 1000))
	paid, cut, unpaid, lent := of(40), of(60), of(50), of(20)
	for _, r := range []*credits.Reservation{&paid, &cut, &unpaid, &lent} {
		r.Lost, r.Call.ID = r.Amount, r.ID
	}
	do(t, l.Reserve(t.Context(), paid))
	do(t, l.Reserve(t.Context(), cut))
	do(t, l.Reserve(t.Context(), unpaid))
	do(t, l.Charge(t.Context(), paid, 15))
	l.stop()
	<-l.done
	s.kill()
	if err := l.Charge(t.Context(), unpaid, 35); !errors.Is(err, credits.ErrUnavailable) {
		t.Fatal(err)
	}
	do(t, l.Reserve(t.Context(), lent))
	s.run()
	// The process dies.
	left := map[uuid.UUID]plugins.Nanodollars{paid.ID: 15, cut.ID: 0, unpaid.ID: 35, lent.ID: 0}
	next := open(t, o)
	settle := func(l *Ledger) (settled bool) {
		t.Helper()
		settled, err := l.Settle(t.Context(), func(r credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error) {
			if want, known := left[r.ID]; !known || charged != want || r.Call.ID != r.ID || !slices.Equal(r.Accounts(), paid.Accounts()) {
				t.Errorf("%+v is left with %s charged, want %s", r, charged, want)
			}
			delete(left, r.ID)
			if r.ID == lent.ID {
				return r.Lost, nil
			}
			return charged, nil
		})
		do(t, err)
		return settled
	}
	if !settle(beside) || settle(next) || len(left) != 4 {
		t.Errorf("with a lease: %d are left", len(left))
	}
	loseLease(t, l)
	eventually(t, func() bool { return beside.renew(t.Context()) == nil && next.flush(t.Context()) == nil })
	do(t, beside.expire(t.Context(), l.node))
	if b := balance(t, beside); b.Spent != 40+60+50+20 || b.Reserved != 0 {
		t.Errorf("before it is settled: %+v", b)
	}
	notAway(next)
	if !settle(next) || len(left) != 0 {
		t.Errorf("%d are left", len(left))
	}
	if b := balance(t, next); b.Spent != 15+35+20 || b.Reserved != 0 {
		t.Errorf("settled: %+v", b)
	}
}

// A node whose lease ended between the charge and the end of a call gives back the rest.
func TestReleaseAfterTheLease(t *testing.T) {
	o := start(t).options()
	cutOff, other := open(t, o), open(t, o)
	do(t, cutOff.Grant(t.Context(), "acme", 100))
	r := of(60)
	r.Lost = 60
	do(t, cutOff.Reserve(t.Context(), r))
	do(t, cutOff.Charge(t.Context(), r, 10))
	cutOff.stop()
	<-cutOff.done
	loseLease(t, cutOff)
	do(t, other.expire(t.Context(), cutOff.node))
	if b := balance(t, other); b.Spent != 60 || b.Reserved != 0 {
		t.Errorf("without the lease: %+v", b)
	}
	do(t, cutOff.Release(t.Context(), r))
	if b := balance(t, other); b.Spent != 10 || b.Reserved != 0 {
		t.Errorf("after its release: %+v", b)
	}
}

// Of two charges that waited for Redis, the first is taken and its node dies before the
// second: the next process takes the second alone.
func TestChargesThatWaitedAreTakenOnce(t *testing.T) {
	s := start(t)
	o := s.options()
	l := open(t, o)
	do(t, l.Grant(t.Context(), "acme", 100))
	first, second := of(20), of(30)
	do(t, l.Reserve(t.Context(), first))
	do(t, l.Reserve(t.Context(), second))
	l.stop()
	<-l.done
	s.kill()
	for _, r := range []credits.Reservation{first, second} {
		if l.Charge(t.Context(), r, r.Amount) == nil || l.Release(t.Context(), r) == nil {
			t.Fatal("a dead server took a charge")
		}
	}
	s.run()
	eventually(t, func() bool { return l.send(t.Context(), l.waiting[0]) == nil })
	s.die(l)
	next := open(t, o)
	eventually(t, func() bool { return next.flush(t.Context()) == nil })
	if b := balance(t, next); b.Spent != 50 {
		t.Errorf("two charges of 20 and 30 are taken as %+v", b)
	}
}

// While Redis is dead nothing can be spent; what calls have cost meanwhile is charged
// when it is back, once.
func TestDeadServer(t *testing.T) {
	s := start(t)
	l := open(t, s.options())
	do(t, l.Grant(t.Context(), "acme", 100))
	r, other := of(60), of(10)
	do(t, l.Reserve(t.Context(), r))
	do(t, l.Reserve(t.Context(), other))
	s.kill()
	if err := l.Reserve(t.Context(), of(1)); !errors.Is(err, credits.ErrUnavailable) {
		t.Errorf("Reserve: %v", err)
	}
	for range 2 {
		if err := l.Charge(t.Context(), r, 30); !errors.Is(err, credits.ErrUnavailable) {
			t.Errorf("Charge: %v", err)
		}
	}
	if err := l.Release(t.Context(), r); !errors.Is(err, credits.ErrUnavailable) {
		t.Errorf("Release: %v", err)
	}
	if err := l.Grant(t.Context(), "acme", 1); !errors.Is(err, credits.ErrUnavailable) {
		t.Errorf("Grant: %v", err)
	}
	s.run()
	five := of(5)
	eventually(t, func() bool { return l.Reserve(t.Context(), five) == nil }) // the charge before goes first
	if b, want := balance(t, l), (credits.Balance{Account: acme, Granted: 100, Spent: 30, Reserved: 15}); b != want {
		t.Errorf("got %+v, want %+v", b, want)
	}
}

// When Redis was away for longer than a lease, all nodes have lost theirs: the first one
// that is back does not free what the others have reserved.
func TestLeaseAfterRedisWasAway(t *testing.T) {
	s := start(t)
	o := s.options()
	first := open(t, o)
	o.File += "2"
	second := open(t, o)
	do(t, first.Grant(t.Context(), "acme", 100))
	do(t, first.Reserve(t.Context(), of(60)))
	for _, l := range []*Ledger{first, second} { // what happens next is the test's to say
		l.stop()
		<-l.done
	}
	s.kill()
	if second.renew(t.Context()) == nil {
		t.Fatal("a lease was renewed by a dead server")
	}
	s.run()
	loseLease(t, first)
	eventually(t, func() bool { return second.renew(t.Context()) == nil })
	if b := balance(t, second); b.Reserved != 60 {
		t.Errorf("right after Redis is back, another node has %+v", b)
	}
	second.renewFailed = time.Now().Add(-2 * second.client.Lease)
	do(t, second.renew(t.Context()))
	if b := balance(t, second); b.Reserved != 0 {
		t.Errorf("a lease later: %+v", b)
	}
}

// A charge that Redis did not take before the death of its node is taken when the node
// is back, once.
func TestChargesSurviveTheirNode(t *testing.T) {
	s := start(t)
	o := s.options()
	l := open(t, o)
	do(t, l.Grant(t.Context(), "acme", 100))
	paid, open1 := of(40), of(40)
	do(t, l.Reserve(t.Context(), paid))
	do(t, l.Reserve(t.Context(), open1))
	do(t, l.Charge(t.Context(), paid, 10))
	s.kill()
	for _, total := range []plugins.Nanodollars{20, 30} {
		if err := l.Charge(t.Context(), open1, total); !errors.Is(err, credits.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	l.stop() // it dies
	s.run()
	for range 2 {
		l = open(t, o)
		do(t, l.flush(t.Context()))
		if b := balance(t, l); b.Spent != 40 {
			t.Errorf("got %+v, want 40 spent", b)
		}
	}
	if left, err := os.ReadFile(o.File); err != nil || len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}
}

// Within its allowance a node goes on while Redis is dead.
func TestAllowance(t *testing.T) {
	s := start(t)
	o := s.options()
	var lent plugins.Nanodollars
	o.Allowance, o.Lent = 20, func(n plugins.Nanodollars) { lent += n }
	l := open(t, o)
	do(t, l.Grant(t.Context(), "acme", 100))
	s.kill()
	first, second := of(15), of(5)
	do(t, l.Reserve(t.Context(), first))
	do(t, l.Reserve(t.Context(), second))
	if err := l.Reserve(t.Context(), of(1)); !errors.Is(err, credits.ErrUnavailable) {
		t.Errorf("beyond the allowance: %v", err)
	}
	for cost, r := range map[plugins.Nanodollars]credits.Reservation{12: first, 5: second} {
		_ = l.Charge(t.Context(), r, cost)
		_ = l.Release(t.Context(), r)
	}
	s.run()
	do(t, l.flush(t.Context()))
	if b, want := balance(t, l), (credits.Balance{Account: acme, Granted: 100, Spent: 17}); b != want || lent != 20 {
		t.Errorf("got %+v, want %+v; lent %s", b, want, lent)
	}
}

// Answers of Redis that are lost change nothing: each grant, charge and release that
// is repeated takes effect once, and no reservation that failed stays.
func TestLostAnswers(t *testing.T) {
	s := start(t)
	o := s.options()
	proxy := &lossy{t: t, to: s.socket}
	o.URL, o.Timeout = "unix://"+proxy.listen(), 50*time.Millisecond
	l, direct := open(t, o), func() *Ledger { o := o; o.URL, o.Timeout = "unix://"+s.socket, 5*time.Second; return open(t, o) }()
	do(t, direct.Grant(t.Context(), "acme", 100_000))
	var spent plugins.Nanodollars
	proxy.on.Store(true)
	for i := range plugins.Nanodollars(60) {
		r := of(100)
		l.client.answers.Store(true) // as it does to the breakers
		if l.Reserve(t.Context(), r) != nil {
			continue
		}
		_ = l.Charge(t.Context(), r, i)
		_ = l.Charge(t.Context(), r, i+1)
		_ = l.Release(t.Context(), r)
		spent += i + 1
	}
	proxy.on.Store(false)
	eventually(t, func() bool { return l.flush(t.Context()) == nil })
	if b, want := balance(t, direct), (credits.Balance{Account: acme, Granted: 100_000, Spent: spent}); b != want || spent == 0 || proxy.lost.Load() < 5 {
		t.Errorf("got %+v, want %+v; %d answers were lost", b, want, proxy.lost.Load())
	}
}

// lossy passes what clients send, and while it is on loses three of ten answers.
type lossy struct {
	t    testing.TB
	to   string
	on   atomic.Bool
	lost atomic.Int64
}

func (p *lossy) listen() (socket string) {
	dir, err := os.MkdirTemp("", "weir-lossy")
	do(p.t, err)
	socket = dir + "/s"
	listener, err := net.Listen("unix", socket)
	do(p.t, err)
	p.t.Cleanup(func() {
		_ = listener.Close()
		_ = os.RemoveAll(dir)
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(client)
		}
	}()
	return socket
}

func (p *lossy) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := server.Read(b)
		if err != nil {
			return
		}
		if p.on.Load() && rand.IntN(10) < 3 {
			p.lost.Add(1)
			return // the connection breaks in place of the answer
		}
		if _, err := client.Write(b[:n]); err != nil {
			return
		}
	}
}

// What one call adds to its latency and to the CPU: a reservation, a charge and a
// release.
func BenchmarkCall(b *testing.B) {
	l := open(b, start(b).options())
	do(b, l.Grant(b.Context(), "acme", 1<<50))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := of(100)
			do(b, l.Reserve(b.Context(), r))
			do(b, l.Charge(b.Context(), r, 50))
			do(b, l.Release(b.Context(), r))
		}
	})
}

// notAway lets a node forget that Redis was away.
func notAway(l *Ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewFailed = time.Time{}
}
