package journal

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// fill sets every field of v, so that one which is forgotten shows.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "masked" { // which is not stored
				fill(v.Field(i), n+i)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n+i)
			fill(value, n+i)
			v.SetMapIndex(key, value)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n+1)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n+i)
		}
	case reflect.String:
		v.SetString("text " + string(rune('a'+n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(n) + 0.25)
	case reflect.Int, reflect.Int64:
		v.SetInt(-int64(n) - 1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n%3) + 1)
	default:
		panic("a kind that no field has had: " + v.Kind().String())
	}
}

func roundTrip[M any](t *testing.T, wire message[M]) {
	t.Helper()
	var empty, full, got M
	fill(reflect.ValueOf(&full).Elem(), 0)
	if r, ok := any(&full).(*record); ok {
		r.Version = storage.Position{} // it is where the entry stands
	}
	for _, want := range []M{empty, full} {
		got = empty
		if err := wire.parse(wire.append(nil, &want), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T comes back as\n%+v, %v, want\n%+v", want, got, err, want)
		}
	}
}

func TestEveryFieldIsKept(t *testing.T) {
	roundTrip(t, recordWire)
	roundTrip(t, annotationWire)
	roundTrip(t, lossWire)
	roundTrip(t, contentWire)
}

func TestRandomRecordsAreKept(t *testing.T) {
	records, _ := storagetest.Records(rand.New(rand.NewPCG(1, 2)), 500)
	var before *storage.Record
	for _, want := range records {
		var got storage.Record
		if err := recordWire.parseAfter(recordWire.append(nil, want), &got, before); err != nil {
			t.Fatal(err)
		}
		before = &got
		// Absent and empty are the same.
		for _, r := range []*storage.Record{&got, want} {
			if len(r.Properties) == 0 {
				r.Properties = nil
			}
			if len(r.Scores) == 0 {
				r.Scores = nil
			}
			if len(r.Assets) == 0 {
				r.Assets = nil
			}
		}
		if !reflect.DeepEqual(&got, want) {
			t.Fatalf("a record comes back as\n%+v, want\n%+v", &got, want)
		}
	}
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	want, _ := sample(1)
	b := protowire.AppendString(protowire.AppendTag(nil, 5000, protowire.BytesType), "from a later version")
	b = protowire.AppendFixed32(protowire.AppendTag(b, 5001, protowire.Fixed32Type), 7)
	b = recordWire.append(b, want)
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), 7) // the org, of another type
	var got storage.Record
	if err := recordWire.parse(b, &got); err != nil || !reflect.DeepEqual(&got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestEncodingDoesNotAllocate(t *testing.T) {
	r, _ := sample(1)
	b := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { recordWire.append(b, r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRepeatedTextsDoNotAllocate(t *testing.T) {
	one, _ := sample(1)
	r := storage.Record{ID: one.ID, Org: one.Org, Provider: one.Provider, Model: one.Model, Dialect: one.Dialect, TargetURL: one.TargetURL}
	b := recordWire.append(nil, &r)
	var parsed storage.Record
	if n := testing.AllocsPerRun(100, func() { _ = recordWire.parseAfter(b, &parsed, &r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	records, _ := storagetest.Records(rand.New(rand.NewPCG(1, 2)), 20)
	for _, r := range records {
		f.Add(recordWire.append(nil, r))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again storage.Record
		if recordWire.parse(b, &r) != nil {
			return
		}
		// Maps have no order: what is compared is the size, and the bytes of
		// those without.
		once := recordWire.append(nil, &r)
		if err := recordWire.parse(once, &again); err != nil {
			t.Fatal(err)
		}
		twice := recordWire.append(nil, &again)
		if len(once) != len(twice) || len(r.Properties)+len(r.Scores) < 2 && !bytes.Equal(once, twice) {
			t.Fatalf("a record changes on its way:\n%+v\n%+v", r, again)
		}
	})
}
