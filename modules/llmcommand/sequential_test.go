//go:build !race

package llmcommand

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// An export of 10,000 rows, of which 1,000 are broken in different ways, is accounted for to
// the last row, and importing the export again changes nothing.
func TestImportAccountsForManyRows(t *testing.T) {
	for i, x := range exports {
		form := exportForms[i%len(exportForms)]
		t.Run(x.product+" as "+form, func(t *testing.T) {
			importSite(t)
			var rows []map[string]any
			for n := range manyRows {
				row := map[string]any{x.id: fmt.Sprint("call-", n), x.begin: "2026-09-01T10:00:00Z", x.counts: n}
				maps.Copy(row, x.fixed)
				switch n % 100 {
				case 9, 19:
					row = nil
				case 29, 39:
					delete(row, x.id)
				case 49, 59:
					row[x.begin] = "yesterday"
				case 69:
					row[x.begin] = "1966-09-01T10:00:00Z"
				case 79:
					row[x.begin] = "2600-09-01T10:00:00Z" // in nanoseconds, no int64 holds it
				case 89, 99:
					row[x.begin] = "1996-09-01T10:00:00Z" // Weir records nothing from before 2000
				}
				rows = append(rows, row)
			}
			file := filepath.Join(t.TempDir(), "export")
			if err := os.WriteFile(file, exportText(x, form, rows), 0o600); err != nil {
				t.Fatal(err)
			}
			want := account{rows: int64(manyRows), recorded: int64(manyRows * 9 / 10), refused: int64(manyRows / 10)}
			if got := importAccount(t.Context(), t, "--dry-run", x.product, file); got != want {
				t.Fatalf("the dry run says %+v, want %+v", got, want)
			}
			if records := storedRecords(t); len(records) > 0 {
				t.Fatalf("the dry run makes %d records", len(records))
			}
			refused := file + ".refused"
			if got := importAccount(t.Context(), t, "--refused="+refused, x.product, file); got != want {
				t.Fatalf("the import says %+v, want %+v", got, want)
			}
			checkRefused(t, refused, rows)
			records := storedRecords(t)
			if len(records) != manyRows*9/10 {
				t.Errorf("%d records", len(records))
			}
			if got, want := importAccount(t.Context(), t, x.product, file), (account{rows: int64(manyRows), known: int64(manyRows * 9 / 10), refused: int64(manyRows / 10)}); got != want {
				t.Fatalf("importing again says %+v, want %+v", got, want)
			}
			if !slices.EqualFunc(records, storedRecords(t), func(a, b gjson.Result) bool { return a.Raw == b.Raw }) {
				t.Error("there are other records after the second import")
			}
		})
	}
}

// A row that is larger than the site takes is refused alone.
func TestImportLargeRow(t *testing.T) {
	importSite(t)
	row := func(id, body string) string {
		return fmt.Sprintf(`{"request_id":%q,"request_created_at":"2026-09-01T10:00:00Z","response_status":200,"request_body":%q}`, id, body) + "\n"
	}
	file := filepath.Join(t.TempDir(), "export.jsonl")
	text := row("a", "x") + row("b", strings.Repeat("y", 30<<20)) + row("c", "z")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_, err := run(t.Context(), importCommand, &out, "helicone", file)
	if err == nil || err.Error() != "1 of 3 rows could not be imported" || !strings.HasPrefix(out.String(), "3 rows: 2 new calls") {
		t.Errorf("%v, and the import says\n%s", err, &out)
	}
	if records := storedRecords(t); len(records) != 2 {
		t.Errorf("%d records", len(records))
	}
}
