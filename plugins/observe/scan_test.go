package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// recorder writes down what a scanner tells.
type recorder struct{ told []string }

const (
	fieldA = iota + Model
	fieldB
	fieldC
)

func (r *recorder) value(f Field, v value) {
	kinds := [...]string{"null", "bool", "number", "text", "object", "array"}
	r.told = append(r.told, fmt.Sprintf("%d %s %s %d", f-Model, kinds[v.kind], v.bytes, v.index))
}
func (r *recorder) endEvent()    { r.told = append(r.told, "event") }
func (r *recorder) endDocument() { r.told = append(r.told, "document") }

var recorded = compile(Table{"a": fieldA, "b.#.c": fieldB, "d.e": fieldC, "d.e.f": fieldA})

func record(body []byte, size func() int) []string {
	var r recorder
	s := scanner{to: &r, root: recorded}
	s.reset()
	feed(s.write, body, size)
	s.finish()
	return r.told
}

func TestScanner(t *testing.T) {
	long := strings.Repeat("é", 200)
	for _, c := range []struct {
		name, json string
		want       []string
	}{
		{"scalars", `{"a":"x","a":-1.5e3,"a":true,"a":null}`,
			[]string{"0 text x 0", "0 number -1.5e3 0", "0 bool true 0", "0 null null 0", "event", "document"}},
		{"white space", " {\n\t\"a\" :\r\n [ ] , \"x\" : { } } ", []string{"0 array  0", "event", "document"}},
		{"index", `{"b":[{"c":1},{"x":[9,{"c":0}],"c":2},7,[{"c":4}]]}`,
			[]string{"1 number 1 0", "1 number 2 1", "event", "document"}},
		{"value and container", `{"d":{"e":1}}{"d":{"e":{"f":"y"}}}`,
			[]string{"2 number 1 0", "event", "document", "2 object  0", "0 text y 0", "event", "document"}},
		{"elements of an array", `[{"a":1},{"a":2}]`,
			[]string{"0 number 1 0", "event", "0 number 2 0", "event", "document"}},
		{"skipped brackets in strings", `{"x":["}]\"{[",{"y":"\\"}],"a":1}`, []string{"0 number 1 0", "event", "document"}},
		{"escapes", `{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud83d.\uZ"}`,
			[]string{"0 text \"\\/\b\f\n\r\té😀\uFFFD.\uFFFDZ 0", "event", "document"}},
		{"escaped key", `{"\u0061":1}`, []string{"0 number 1 0", "event", "document"}},
		{"cut between characters", `{"a":"x` + long + `"}`, []string{"0 text x" + long[:254] + " 0", "event", "document"}},
		{"long escapes", `{"a":"` + strings.Repeat(`\u0041`, 5000) + `"}`,
			[]string{"0 text " + strings.Repeat("A", 256) + " 0", "event", "document"}},
		{"other keys", `{"aa":1,"":2,"A":3,"e":4}`, []string{"event", "document"}},
		{"broken", `{"a":1]{"a":2}`, []string{"0 number 1 0"}},
		{"broken key", `{"a":1,b:2}`, []string{"0 number 1 0"}},
		{"cut", `{"a":1,"a":"x`, []string{"0 number 1 0"}},
		{"number at the end", ` 12`, []string{"event", "document"}},
	} {
		for name, size := range chunkings {
			if got := record([]byte(c.json), size); !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %q, want %q", c.name, name, got, c.want)
			}
		}
	}
}

// A document's depth must not cost memory.
func TestScannerAtAnyDepth(t *testing.T) {
	deep := []byte(`{"x":` + strings.Repeat(`[{"a":`, 10_000) + `1` + strings.Repeat(`}]`, 10_000) + `,"a":2}`)
	want := []string{"0 number 2 0", "event", "document"}
	if got := record(deep, chunkings["whole"]); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	x := New("chat", "", typed("application/json"))
	if n := testing.AllocsPerRun(10, func() { x.Write(deep) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte(`{"a":"\u0061","b":[{"c":1}],"d":{"e":null}}`), uint16(3))
	f.Add([]byte(`[{"a":1.5},"\\\"",[]]`), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, seed uint16) {
		whole := record(b, chunkings["whole"])
		if cut := record(b, cuts(seed)); !slices.Equal(whole, cut) {
			t.Fatalf("in pieces %q, as a whole %q", cut, whole)
		}
		var o struct {
			D struct{ E *json.Number }
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if !json.Valid(b) {
			return
		}
		if n := len(whole); n == 0 || whole[n-1] != "document" {
			t.Fatalf("%q: no end of a valid document", whole)
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(b, &members) != nil || d.Decode(&o) != nil {
			return
		}
		var a string
		raw := members["a"]
		if json.Unmarshal(raw, &a) != nil || len(raw) == 0 || raw[0] != '"' || len(a) > 200 || strings.ContainsRune(a, 0xFFFD) {
			return
		}
		if !slices.Contains(whole, "0 text "+a+" 0") {
			t.Fatalf("%q lacks %q", whole, a)
		}
	})
}

// cuts are chunk sizes that a seed gives.
func cuts(seed uint16) func() int {
	n := uint32(seed)
	return func() int {
		n = n*1664525 + 1013904223
		return 1 + int(n>>24)%23
	}
}
