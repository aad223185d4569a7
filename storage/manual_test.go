package storage_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/storage"
)

var update = flag.Bool("update", false, "write the tables of docs/api.md that the schema has")

// recordTable has the values of answers, and how each is filtered and sorted by.
func recordTable() string {
	var b strings.Builder
	b.WriteString("| field | filter | sort | |\n|---|---|---|---|\n")
	for _, c := range storage.Schema {
		if c.Shown() == "" {
			continue
		}
		filter, sort := "", ""
		if storage.LookupField(storage.RequestResponse, c.Field) != nil && c.Field != "" {
			filter = "`" + c.Field + "`"
		}
		if c.Sort != "" {
			sort = "`" + string(c.Sort) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Shown(), filter, sort, c.About)
	}
	return b.String()
}

// filterTable has the fields of filters by their kinds.
func filterTable() string {
	var b strings.Builder
	b.WriteString("| kind | fields |\n|---|---|\n")
	for _, kind := range []storage.Kind{storage.Text, storage.Number, storage.Time, storage.Boolean, storage.ContainsText, storage.PropertyKey} {
		var plain, maps []string
		for _, f := range storage.Fields() {
			switch {
			case f.Group != storage.RequestResponse || f.Kind != kind:
			case f.Map:
				maps = append(maps, "`"+f.Name+"`")
			default:
				plain = append(plain, "`"+f.Name+"`")
			}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", kind, strings.Join(plain, ", "))
		if len(maps) > 0 {
			fmt.Fprintf(&b, "| %s by name | %s |\n", kind, strings.Join(maps, ", "))
		}
	}
	return b.String()
}

// The manual has each value of a record and each field of filters.
func TestManualHasTheSchema(t *testing.T) {
	const path = "../docs/api.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	for name, table := range map[string]string{"values": recordTable(), "filters": filterTable()} {
		begin, end := "<!-- "+name+": go test ./storage -run Manual -update -->\n", "<!-- end of "+name+" -->\n"
		before, rest, begins := strings.Cut(want, begin)
		_, after, ends := strings.Cut(rest, end)
		if !begins || !ends {
			t.Fatalf("%s has no place for the %s, from %q to %q", path, name, begin, end)
		}
		want = before + begin + table + end + after
	}
	switch {
	case *update:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case want != string(page):
		t.Errorf("%s is not as the schema: run go test ./storage -run Manual -update", path)
	}
}
