package llmcommand

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/redact"
)

// source is a product whose exports can be imported.
type source struct {
	// call makes a span from a row. The span is nil if the row is no call of a model. skipped
	// then says what the row is.
	call func(*row) (s *span, skipped string, err error)
	// repeats are the fields that call does not read because they repeat other fields.
	repeats []string
	// name returns the name under which call reads a field of a file.
	name func(string) string
}

// sources are the products, each with a constructor.
var sources = map[string]func() *source{
	"helicone": newHelicone, "langfuse": newLangfuse, "litellm": newLiteLLM, "portkey": newPortkey, "tensorzero": newTensorZero,
}

func importCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	cmd.Flags().Bool("keep-old", false, "Import calls that are older than the store's retention, too: it deletes them at its next maintenance")
	cmd.Flags().Bool("replace", false, "Import calls that are already there once more, in place of their records")
	cmd.Flags().Bool("dry-run", false, "Say what would become of each row, and import nothing")
	cmd.Flags().String("secrets", "", "A new file for the secrets of imported keys, an object a line")
	cmd.Flags().String("refused", "", "A new file for the rows that are refused, an object a line, each with its reason")
	cmd.Args = cobra.MinimumNArgs(2)
	cmd.RunE = runImport
}

// importCounts accounts for the rows of an import. Each row is in one count: here, in the
// sender's, or in what the sender has not sent.
type importCounts struct {
	sender       *spanSender
	refused      *refusals
	rows         int64
	noun         string           // what rows become: calls or keys
	secretFields []string         // fields that are not written to the file of refused rows
	skipped      map[string]int64 // rows that are no calls, by what they are
	unmapped     map[string]int64 // rows with a field for which a record has none, by the field
	mistyped     map[string]int64 // rows with a value of another type than the field's, by the path
}

func runImport(cmd *cobra.Command, args []string) (err error) {
	keys := args[0] == litellmKeys
	makeSource, ok := sources[args[0]]
	if !ok && !keys {
		return fmt.Errorf("%q: expected one of %s", args[0], strings.Join(slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(sources)), litellmKeys))), ", "))
	}
	for flag, ofKeys := range map[string]bool{"secrets": true, "keep-old": false, "replace": false} {
		if cmd.Flags().Changed(flag) && ofKeys != keys {
			return misused("--%s is not for %s", flag, args[0])
		}
	}
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	c.header = make(http.Header)
	for name, field := range map[string]string{"keep-old": "Service-Keep-Old", "replace": "Service-Replace", "dry-run": dryRun} {
		if on, _ := cmd.Flags().GetBool(name); on {
			c.header.Set(field, "true")
		}
	}
	file, _ := cmd.Flags().GetString("refused")
	refused, err := newRefusals(cmd.ErrOrStderr(), file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, refused.close()) }()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	i := importCounts{refused: refused, noun: "calls", skipped: make(map[string]int64), unmapped: make(map[string]int64), mistyped: make(map[string]int64)}
	if keys {
		return importKeys(ctx, cmd, i, c, args[1:])
	}
	i.sender = &spanSender{client: c, refused: refused}
	from := makeSource()
	err = i.files(args[1:], func(object gjson.Result, at origin) (*refusal, error) { return i.row(ctx, from, object, at) })
	if sent := i.sender.flush(ctx); err == nil {
		err = sent
	}
	i.report(cmd.OutOrStdout(), c)
	return i.failure(err)
}

// failure returns the error that an import ends with, nil if it imported all rows.
func (i *importCounts) failure(err error) error {
	if err != nil {
		return fmt.Errorf("%w; import the same files again to go on: what is there already is not doubled", err)
	}
	if n := i.refused.total(); n > 0 {
		return fmt.Errorf("%s of %s rows could not be imported", formatCount(n), formatCount(i.rows))
	}
	return nil
}

// files calls take with each row of some files, up to the first error.
func (i *importCounts) files(names []string, take func(gjson.Result, origin) (*refusal, error)) error {
	for _, name := range names {
		if err := i.file(name, take); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// file calls take with each row of a file. A refusal that take returns concerns this row alone.
func (i *importCounts) file(name string, take func(gjson.Result, origin) (*refusal, error)) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	row := origin{File: name}
	for object, err := range rows(file) {
		refused, isRefusal := errors.AsType[*refusal](err)
		if err != nil && !isRefusal {
			return err
		}
		i.rows++
		row.Row++
		row.Text = i.refusalText(object, isRefusal)
		if err == nil {
			refused, err = take(object, row)
		}
		if refused != nil {
			err = i.refused.add(row, refused)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refusalText returns the text of a row for the file of refused rows, without its secrets.
func (i *importCounts) refusalText(object gjson.Result, broken bool) string {
	if len(i.secretFields) == 0 {
		return object.Raw
	}
	fields := make(map[string]json.RawMessage)
	if broken || json.Unmarshal([]byte(object.Raw), &fields) != nil {
		return ""
	}
	for _, name := range i.secretFields {
		delete(fields, name)
	}
	text, _ := json.Marshal(fields) // cannot fail: the fields were JSON
	return string(text)
}

// row sends a row.
func (i *importCounts) row(ctx context.Context, from *source, object gjson.Result, at origin) (*refusal, error) {
	r := newRow(object, from.name)
	s, skipped, err := from.call(r)
	refused, isRefusal := errors.AsType[*refusal](err)
	switch {
	case isRefusal:
		return refused, nil
	case err != nil:
		return nil, err
	case s == nil:
		i.skipped[skipped]++
		return nil, nil
	}
	i.count(r, from.repeats)
	return nil, i.sender.add(ctx, s, at)
}

// count counts the fields of a row that no record has, except the fields in without, and the
// values of wrong types.
func (i *importCounts) count(r *row, without []string) {
	for name, value := range r.fields {
		if !r.read[name] && !slices.Contains(without, name) && !blank(value) {
			i.unmapped[name]++
		}
	}
	for path := range r.wrong {
		i.mistyped[path]++
	}
}

func (i *importCounts) report(w io.Writer, c *client) {
	s := i.sender
	if c.dry() {
		fmt.Fprintln(w, "Nothing was imported. Without --dry-run:")
	}
	fmt.Fprintf(w, "%s rows: %s new calls at %s\n", formatCount(i.rows), formatCount(s.recorded), c.address)
	for _, c := range []struct {
		count int64
		what  string
	}{
		{s.replaced, "replaced"},
		{s.duplicate, "already there"},
		{s.expired, "not imported: older than the store's retention; --keep-old imports them"},
		{int64(len(s.batch)), "not sent"},
	} {
		if c.count > 0 {
			fmt.Fprintf(w, "%s %s\n", formatCount(c.count), c.what)
		}
	}
	i.details(w)
}

// details reports what became of the other rows, and of fields.
func (i *importCounts) details(w io.Writer) {
	for _, c := range []struct {
		format string
		counts map[string]int64
	}{
		{"%[2]s not imported: %[1]s\n", i.skipped},
		{"%[2]s refused: %[1]s\n", i.refused.reasons},
		{"not kept: %s of %s " + i.noun + "\n", i.unmapped},
		{"unknown, because the value has another type: %s of %s " + i.noun + "\n", i.mistyped},
	} {
		for _, key := range slices.Sorted(maps.Keys(c.counts)) {
			fmt.Fprintf(w, c.format, printable(key), formatCount(c.counts[key]))
		}
	}
}

// spanOf returns a span with the ids and times of a call. It derives the ids from a product's own,
// and always the same ones, so that a second import adds nothing. Ids of OpenTelemetry stay as
// they are.
func spanOf(trace, id string, begin, end time.Time) (*span, error) {
	switch {
	case id == "":
		return nil, &refusal{reason: "it has no id"}
	case begin.IsZero():
		return nil, &refusal{reason: "it does not say when it began"}
	case begin.Before(time.Unix(0, 0)) || begin.After(lastTime) || end.After(lastTime):
		return nil, &refusal{reason: "it has a time before 1970 or after 2261"}
	}
	return newSpan(trace, id, begin, end), nil
}

// lastTime is the last time that a span can have: int64 counts its nanoseconds.
var lastTime = time.Unix(0, math.MaxInt64)

// idBytes returns an id of that many bytes, which id has in hexadecimal, or else is derived from id.
func idBytes(id string, size int) []byte {
	plain := strings.ReplaceAll(id, "-", "")
	if b, err := hex.DecodeString(plain); err == nil && len(b) == size && strings.Trim(plain, "0") != "" {
		return b
	}
	sum := sha256.Sum256([]byte(id))
	return sum[:size]
}

// properties sets labels, whose names keep their letter case. Labels that are named like
// credentials are left out.
func (s *span) properties(labels map[string]string) {
	maps.DeleteFunc(labels, func(name, value string) bool { return value == "" || redact.Credential(name) })
	if len(labels) > 0 {
		text, _ := json.Marshal(labels) // text always marshals
		s.label("Properties", string(text))
	}
}

// counts sets the attributes of the counts that a row has. keys has the attribute for each path.
func (s *span) counts(r *row, keys map[string]string) {
	for path, key := range keys {
		if n, ok := r.count(path); ok {
			s.count(key, n)
		}
	}
}

func sameName(name string) string { return name }
