package lineage

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/test/agents"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of calls in a small heap
	m.Run()
}

// said is a message of Chat Completions.
type said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func user(text string) said  { return said{"user", text} }
func model(text string) said { return said{"assistant", text} }

func outline(t *testing.T, system string, messages ...said) *observe.Outline {
	t.Helper()
	body, err := json.Marshal(map[string]any{"messages": append([]said{{"system", system}}, messages...)})
	if err != nil {
		t.Fatal(err)
	}
	reader := observe.NewRequestReader(plugins.Chat)
	reader.Write(body)
	return reader.Outline()
}

// withTools is an outline of a request that has tools.
func withTools(t *testing.T, messages ...said) *observe.Outline {
	t.Helper()
	o := outline(t, "S", messages...)
	o.Tools = 1
	return o
}

// tool is a call of a tool in an answer.
type tool struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// answer is an answer of Chat Completions.
func answer(t *testing.T, text string, tools ...tool) storage.Body {
	t.Helper()
	var calls []map[string]any
	for _, tool := range tools {
		calls = append(calls, map[string]any{"id": "c", "type": "function", "function": tool})
	}
	message := map[string]any{"role": "assistant", "content": text, "tool_calls": calls}
	data, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": message}}})
	if err != nil {
		t.Fatal(err)
	}
	return storage.Body{Type: "application/json", Data: data}
}

// task is a call of a tool that asks for a sub-agent.
func task(text string) tool { return tool{"task", fmt.Sprintf(`{"prompt": %q}`, text)} }

func newRecord() *storage.Record {
	return &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "acme", Dialect: plugins.Chat, CreatedAt: 1}
}

// join joins a call of an organisation, and returns its record.
func join(t *testing.T, x *Index, messages ...said) *storage.Record {
	t.Helper()
	r := newRecord()
	x.Join(r, outline(t, "S", messages...), uuid.Nil)
	return r
}

func expect(t *testing.T, r *storage.Record, parent, root uuid.UUID, turn plugins.Count) {
	t.Helper()
	if r.ParentID != parent || r.RootID != root || r.Turn != turn {
		t.Errorf("parent %s, root %s, turn %v; want %s, %s, %v", r.ParentID, r.RootID, r.Turn, parent, root, turn)
	}
}

func TestAConversationGoesOn(t *testing.T) {
	x := new(Index)
	first := join(t, x, user("a"))
	expect(t, first, uuid.Nil, uuid.Nil, plugins.Known(1))
	second := join(t, x, user("a"), model("b"), user("c"))
	expect(t, second, first.ID, first.ID, plugins.Known(2))
	third := join(t, x, user("a"), model("b"), user("c"), model("d"), user("e"))
	expect(t, third, second.ID, first.ID, plugins.Known(3))
	again := join(t, x, user("a"), model("b"), user("c"), model("d"), user("e"))
	expect(t, again, second.ID, first.ID, plugins.Known(3))
	fork := join(t, x, user("a"), model("b"), user("c"), model("x"), user("y"))
	expect(t, fork, second.ID, first.ID, plugins.Known(3))
	expect(t, join(t, x, user("a")), uuid.Nil, uuid.Nil, plugins.Known(1))
	unknown := join(t, x, user("other"), model("b"), user("c"))
	expect(t, unknown, uuid.Nil, uuid.Nil, plugins.Count{})
	expect(t, join(t, x, user("other"), model("b"), user("c"), user("d")), unknown.ID, unknown.ID, plugins.Count{})
}

func TestAnEditedConversationGoesOn(t *testing.T) {
	for name, edited := range map[string][]said{
		"replaced":  {user("a"), model("b"), user("removed"), model("d"), user("e"), model("f"), user("g")},
		"taken out": {user("a"), model("d"), user("e"), model("f"), user("g")},
		"first":     {user("x"), model("b"), user("c"), model("d"), user("e"), model("f"), user("g")},
	} {
		x := new(Index)
		first := join(t, x, user("a"))
		join(t, x, user("a"), model("b"), user("c"))
		before := join(t, x, user("a"), model("b"), user("c"), model("d"), user("e"))
		r := join(t, x, edited...)
		if r.ParentID != before.ID || r.RootID != first.ID || r.Turn.N != 4 {
			t.Errorf("%s: parent %s, want %s; turn %v", name, r.ParentID, before.ID, r.Turn)
		}
	}
}

// Conversations that only end alike stay apart: a provider's cache has what stands before.
func TestConversationsThatEndAlikeStayApart(t *testing.T) {
	x := new(Index)
	one, other := join(t, x, user("a")), join(t, x, user("b"))
	expect(t, join(t, x, user("a"), model("ok"), user("go on")), one.ID, one.ID, plugins.Known(2))
	second := join(t, x, user("b"), model("ok"), user("go on"))
	expect(t, second, other.ID, other.ID, plugins.Known(2))
	expect(t, join(t, x, user("b"), model("ok"), user("go on"), model("ok"), user("and on")), second.ID, other.ID, plugins.Known(3))
}

// A conversation without its oldest messages goes on, though another one began as it does now.
func TestATrimmedConversationGoesOn(t *testing.T) {
	x := new(Index)
	join(t, x, user("hi"))
	join(t, x, user("a"))
	second := join(t, x, user("a"), model("b"), user("hi"), model("c"), user("d"))
	if r := join(t, x, user("hi"), model("c"), user("d"), model("e"), user("f")); r.ParentID != second.ID {
		t.Errorf("it goes on after %s, want %s", r.ParentID, second.ID)
	}
}

func TestOthersConversationsAreNeverLinked(t *testing.T) {
	for name, change := range map[string]func(r *storage.Record){
		"organisation": func(r *storage.Record) { r.Org = "other" },
		"key":          func(r *storage.Record) { r.AuthHash = "other" },
		"user":         func(r *storage.Record) { r.UserID = "other" },
		"session":      func(r *storage.Record) { r.SessionID = "other" },
	} {
		x := new(Index)
		first := newRecord()
		l := x.Join(first, withTools(t, user("a")), uuid.Nil)
		first.ResponseID = "resp_1"
		l.Answered(first, 0, 0, answer(t, "", task("Find whatever there is to be found.")))

		for _, o := range []*observe.Outline{
			outline(t, "S", user("a"), model("b"), user("c")),
			outline(t, "S", user("Find whatever there is to be found.")),
		} {
			r := newRecord()
			change(r)
			x.Join(r, o, uuid.Nil)
			if r.ParentID == first.ID || r.RootID == first.ID {
				t.Errorf("another %s: parent %s", name, r.ParentID)
			}
		}
		if r := newRecord(); name == "organisation" {
			change(r)
			o := outline(t, "S", user("d"))
			o.PreviousResponse = "resp_1"
			if x.Join(r, o, uuid.Nil); r.ParentID != uuid.Nil {
				t.Errorf("another organisation's response is the parent")
			}
		}
	}
}

func TestASubAgentIsOfTheCallThatAskedForIt(t *testing.T) {
	x := new(Index)
	main := newRecord()
	l := x.Join(main, withTools(t, user("a")), uuid.Nil)
	l.Answered(main, 0, 0, answer(t, "", task("Find whatever there is to be found.")))

	sub := newRecord()
	x.Join(sub, outline(t, "You help.", user("Find whatever there is to be found.")), uuid.Nil)
	expect(t, sub, main.ID, main.ID, plugins.Known(1))
	next := newRecord()
	x.Join(next, outline(t, "You help.", user("Find whatever there is to be found."), model("b"), user("c")), uuid.Nil)
	expect(t, next, sub.ID, main.ID, plugins.Known(2))
}

func TestTheSameFirstMessageBeginsConversationsOfTheirOwn(t *testing.T) {
	x := new(Index)
	ask := func(text string, messages ...said) *storage.Record {
		r := newRecord()
		x.Join(r, withTools(t, messages...), uuid.Nil).Answered(r, 0, 0, answer(t, text))
		return r
	}
	const one, two, three = "The first of the answers.", "The second of the answers.", "The third of the answers."
	a := ask(one, user("q"))
	b := ask(two, user("q"))
	c := ask(three, user("q"))
	if a.ParentID != uuid.Nil || c.ParentID != uuid.Nil {
		t.Errorf("parents %s and %s", a.ParentID, c.ParentID)
	}
	for answer, first := range map[string]*storage.Record{one: a, two: b, three: c} {
		r := ask("Well.", user("q"), model(answer), user("Go on."))
		expect(t, r, first.ID, first.ID, plugins.Known(2))
	}
}

func TestTheSameTaskIsOfEachCallThatAskedForIt(t *testing.T) {
	x := new(Index)
	var main []*storage.Record
	for _, question := range []string{"a", "b"} {
		r := newRecord()
		x.Join(r, withTools(t, user(question)), uuid.Nil).Answered(r, 0, 0, answer(t, "", task("Find whatever there is to be found.")))
		main = append(main, r)
	}
	for _, r := range main {
		expect(t, join(t, x, user("Find whatever there is to be found.")), r.ID, r.ID, plugins.Known(1))
	}
	again := join(t, x, user("Find whatever there is to be found."))
	expect(t, again, main[1].ID, main[1].ID, plugins.Known(1))
}

func TestTheHeadersOfAnAgentSayWhatNoMessageSays(t *testing.T) {
	x := new(Index)
	of := func(agent, parent string, messages ...said) *storage.Record {
		r := newRecord()
		r.SessionID, r.Properties = "s", map[string]string{AgentProperty: agent, ParentAgentProperty: parent}
		x.Join(r, outline(t, "S", messages...), uuid.Nil)
		return r
	}
	main := of("", "", user("a"))
	second := of("", "", user("a"), model("b"), user("c"))
	sub := of("a1", "", user("d"))
	expect(t, sub, second.ID, main.ID, plugins.Known(1))
	nested := of("a2", "a1", user("e"))
	expect(t, nested, sub.ID, main.ID, plugins.Known(1))
	compacted := of("", "", user("What was said so far is this."))
	expect(t, compacted, second.ID, main.ID, plugins.Known(3))
	forked := of("a3", "", user("a"), model("b"), user("x"))
	expect(t, forked, main.ID, main.ID, plugins.Known(1))
}

func TestAResponseNamesTheOneBefore(t *testing.T) {
	x := new(Index)
	first := newRecord()
	first.Dialect = plugins.Responses
	l := x.Join(first, outline(t, "S", user("a")), uuid.Nil)
	first.ResponseID = "resp_1"
	l.Answered(first, 0, 0, storage.Body{})
	o := outline(t, "S", user("b"))
	o.PreviousResponse = "resp_1"
	second := newRecord()
	x.Join(second, o, uuid.Nil)
	expect(t, second, first.ID, first.ID, plugins.Known(2))

	o = outline(t, "S", user("c"))
	o.PreviousResponse = "resp_of_the_gateway"
	third := newRecord()
	x.Join(third, o, first.ID)
	expect(t, third, first.ID, first.ID, plugins.Known(2))
	forgotten := newRecord()
	earlier := uuid.Must(uuid.NewV7())
	x.Join(forgotten, o, earlier)
	expect(t, forgotten, earlier, uuid.Nil, plugins.Count{})
}

func TestMemoryIsBounded(t *testing.T) {
	x := new(Index)
	var messages []observe.MessageHash
	for i := range 2000 {
		messages = append(messages, observe.MessageHash{Hash: uint64(i)})
	}
	for i := range 5000 {
		own := append(messages[:len(messages):len(messages)], observe.MessageHash{Hash: uint64(10_000 + i)})
		l := x.Join(newRecord(), &observe.Outline{Messages: own, Tools: 1}, uuid.Nil)
		l.Answered(newRecord(), 0, 0, answer(t, "", task(fmt.Sprint("Find whatever there is to be found, number ", i))))
		if x.size > maxSize {
			t.Fatalf("%d bytes after %d calls", x.size, i)
		}
	}
	calls, keys := 0, 0
	for slot := x.oldest; slot != 0; slot = x.slots.at(slot).next {
		calls++
		for range words(&x.blocks, x.slots.at(slot).keys) {
			keys++
		}
	}
	blocks, counts := int(x.blocks.created)-len(x.blocks.free), int(x.toolCounts.created)-len(x.toolCounts.free)
	if size := callSize*calls + keySize*keys + blockSize*blocks + toolCountsSize*counts; size != x.size || size < maxSize/2 {
		t.Errorf("%d bytes are counted, %d are there", x.size, size)
	}
	if len(x.calls)+len(x.tasks) > keys || len(x.tasks) != calls {
		t.Errorf("%d calls and %d tasks are found by %d keys of %d calls", len(x.calls), len(x.tasks), keys, calls)
	}
}

// A conversation is found again after more calls of others than there is room for, and goes in
// the end.
func TestTheEndOfAConversationIsSpared(t *testing.T) {
	x := new(Index)
	others := uint64(0)
	fill := func(rooms float64) {
		for until := x.serial + uint32(rooms*maxSize/600); x.serial < until; others++ { // each takes less than 600 bytes
			x.Join(newRecord(), &observe.Outline{Messages: []observe.MessageHash{{Hash: 1<<32 + others}}}, uuid.Nil)
		}
	}
	messages := []said{user("Where does the weir stand?")}
	root := join(t, x, messages...)
	parent, turn := root, int64(1)
	for _, rooms := range []float64{0.1, 1.5, 2.5, 3.5} {
		fill(rooms)
		messages = append(messages, model("In the river."), user(fmt.Sprint("And then? ", rooms)))
		turn++
		r := join(t, x, messages...)
		expect(t, r, parent.ID, root.ID, plugins.Known(turn))
		parent = r
	}
	fill(6)
	r := join(t, x, append(messages, model("Nowhere."), user("Still there?"))...)
	expect(t, r, uuid.Nil, uuid.Nil, plugins.Count{})
	if x.size > maxSize {
		t.Errorf("%d bytes", x.size)
	}
}

// The garbage collector has as little to mark with many calls as with few.
func TestCallsAreNoObjects(t *testing.T) {
	x := new(Index)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const calls = 20_000
	for i := range calls {
		x.Join(newRecord(), &observe.Outline{Messages: []observe.MessageHash{{Hash: uint64(i)}}}, uuid.Nil)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if objects := after.HeapObjects - before.HeapObjects; objects > calls/20 {
		t.Errorf("%d objects for %d calls", objects, calls)
	}
	if bytes := int(after.HeapAlloc - before.HeapAlloc); bytes > 2*x.size {
		t.Errorf("%d bytes are taken, %d are counted", bytes, x.size)
	}
}

func TestWhyTheCacheMissed(t *testing.T) {
	type side struct {
		o       *observe.Outline
		record  storage.Record
		account uint64
	}
	for _, c := range []struct {
		reason, at string
		missed     int64
		change     func(was, is *side)
	}{
		{"", "", 0, func(_, is *side) { is.record.Usage.CacheRead = plugins.Known(9900) }},
		{"", "", 0, func(_, is *side) { is.record.Usage.CacheRead = plugins.Count{} }},
		{unexplained, "", 10_000, func(_, _ *side) {}},
		{unexplained, "", 6000, func(_, is *side) { is.record.Usage.CacheRead = plugins.Known(4000) }},
		{belowMinimum, "", 900, func(was, _ *side) { was.record.Usage.Input = plugins.Known(900) }},
		{neverMarked, "", 10_000, func(was, is *side) { was.record.Model, is.record.Model = "claude-sonnet-4-5", "claude-sonnet-4-5" }},
		{neverMarked, "messages", 10_000, func(was, is *side) {
			was.record.Model, is.record.Model = "claude-sonnet-4-5", "claude-sonnet-4-5"
			was.o.Marked, is.o.Marked = true, true
		}},
		{modelChanged, "", 10_000, func(_, is *side) { is.record.Model = "gpt-5-mini" }},
		{otherKey, "", 10_000, func(_, is *side) { is.account = 7 }},
		{otherKey, "", 10_000, func(_, is *side) { is.o.CacheKey = 7 }},
		{toolsChanged, "tools", 10_000, func(_, is *side) { is.o.Tools = 7 }},
		{systemChanged, "system", 10_000, func(_, is *side) { is.o.Instructions = 7 }},
		{historyEdited, "messages[2]", 10_000, func(_, is *side) { is.o.Messages[1].Hash = 7 }},
		{expired, "", 10_000, func(_, is *side) { is.record.CreatedAt += 301_000 }},
		{unexplained, "", 10_000, func(was, is *side) { was.o.CacheLife, is.record.CreatedAt = "1h", is.record.CreatedAt+301_000 }},
	} {
		x := new(Index)
		was := side{o: outline(t, "S", user("a"), model("b"), user("c")), record: *newRecord()}
		is := side{o: outline(t, "S", user("a"), model("b"), user("c"), model("d"), user("e")), record: *newRecord()}
		for _, s := range []*side{&was, &is} {
			s.record.Model = "gpt-5"
			s.record.Usage = plugins.Usage{Input: plugins.Known(10_000), CacheRead: plugins.Known(0)}
		}
		is.record.Usage.Input = plugins.Known(12_000)
		c.change(&was, &is)
		x.Join(&was.record, was.o, uuid.Nil).Answered(&was.record, was.account, 0, storage.Body{})
		l := x.Join(&is.record, is.o, uuid.Nil)
		l.Miss(&is.record, is.account)
		if r := is.record; r.CacheMiss != c.reason || r.CacheMissAt != c.at || r.CacheMissed.N != c.missed || r.CacheMissed.Valid != (c.reason != "") {
			t.Errorf("%s at %q, %v tokens; want %s at %q, %d", r.CacheMiss, r.CacheMissAt, r.CacheMissed, c.reason, c.at, c.missed)
		}
	}
}

func TestAnotherTryHasTheCauseOfTheFirst(t *testing.T) {
	for _, failed := range []bool{true, false} {
		x := new(Index)
		answer := func(l *Link, r *storage.Record, input int64) {
			r.Model, r.Usage = "gpt-5", plugins.Usage{Input: plugins.Known(input), CacheRead: plugins.Known(0)}
			l.Answered(r, 0, 0, storage.Body{})
		}
		first, try, again := newRecord(), newRecord(), newRecord()
		answer(x.Join(first, outline(t, "S", user("a"), model("b"), user("c")), uuid.Nil), first, 10_000)
		edited := outline(t, "S", user("x"), model("b"), user("c"), model("d"), user("e"))
		l := x.Join(try, edited, uuid.Nil)
		if !failed {
			answer(l, try, 12_000)
		}
		l = x.Join(again, edited, uuid.Nil)
		answer(l, again, 12_000)
		l.Miss(again, 0)
		want := storage.Record{CacheMiss: historyEdited, CacheMissAt: "messages[1]", CacheMissed: plugins.Known(10_000)}
		if !failed { // what it had sent was in the cache
			want = storage.Record{CacheMiss: unexplained, CacheMissed: plugins.Known(12_000)}
		}
		if again.ParentID != first.ID || again.CacheMiss != want.CacheMiss || again.CacheMissAt != want.CacheMissAt || again.CacheMissed != want.CacheMissed {
			t.Errorf("failed %v: %s at %q, %v tokens", failed, again.CacheMiss, again.CacheMissAt, again.CacheMissed)
		}
	}
}

func TestTheFirstThatAskedForATaskIsTakenFirst(t *testing.T) {
	x := new(Index)
	const scope, task = 1, 2
	a, b := x.remember(call{}), x.remember(call{})
	x.addTask(a, scope, task)
	x.addTask(b, scope, task)
	if x.takeTask(scope, task) != a {
		t.Error("the first did not come first")
	}
	c := x.remember(call{})
	x.addTask(c, scope, task)
	for _, want := range []*call{b, c, nil} {
		if x.takeTask(scope, task) != want {
			t.Error("a later one came before an earlier one")
		}
	}
	x.addTask(a, scope, task)
	x.forget(x.removeOldest())
	if x.takeTask(scope, task) != nil || len(x.tasks) != 0 {
		t.Error("a call that is forgotten was taken")
	}
}

func BenchmarkJoin(b *testing.B) {
	x := new(Index)
	o := &observe.Outline{}
	for i := range 200 {
		o.Messages = append(o.Messages, observe.MessageHash{Hash: uint64(i), Model: i%2 == 1})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.Messages[199].Hash = uint64(i) + 1000
		r := newRecord()
		r.UserID = fmt.Sprint(i % 100)
		x.Join(r, o, uuid.Nil)
	}
}

// BenchmarkCall is all that a call of 100 KB costs: its outline is read with the request,
// it is joined, and the cause of a miss sought.
func BenchmarkCall(b *testing.B) {
	turns := agents.Workload{Agents: 1, Turns: 30, TurnBytes: 5600, Seed: 1}.Generate()
	i := slices.IndexFunc(turns, func(t agents.Turn) bool { return len(t.Request) > 100<<10 })
	body := turns[i].Request
	x := new(Index)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		reader := observe.NewRequestReader(plugins.Chat)
		reader.Write(body)
		r := newRecord()
		l := x.Join(r, reader.Outline(), uuid.Nil)
		r.Model, r.Usage = "gpt-5", plugins.Usage{Input: plugins.Known(25_000), CacheRead: plugins.Known(0)}
		l.Miss(r, 0)
		l.Answered(r, 0, 0, storage.Body{})
	}
}
