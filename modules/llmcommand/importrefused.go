package llmcommand

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// refusal says why a row is not imported. The rows after it are read.
type refusal struct {
	reason string // the same for all rows that have the fault, so that they can be counted
	detail string // what is wrong with this row
}

func (r *refusal) Error() string {
	if r.detail == "" {
		return r.reason
	}
	return r.reason + ": " + r.detail
}

// origin is a row of an export.
type origin struct {
	File string `json:"file"`
	Row  int64  `json:"row"`            // in the file, from 1
	Text string `json:"text,omitempty"` // JSON, or what the file has where it is no JSON; "" for a row that cannot be read
}

// refusals are the rows that are not imported.
type refusals struct {
	stderr  io.Writer
	file    *os.File         // has each refused row; nil without --refused
	reasons map[string]int64 // rows by reason
}

// newRefusals makes the file, which holds what was said in calls: others may not read it.
func newRefusals(stderr io.Writer, name string) (*refusals, error) {
	r := &refusals{stderr: stderr, reasons: make(map[string]int64)}
	if name == "" {
		return r, nil
	}
	var err error
	r.file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return r, err
}

// maxComplaints bounds the refused rows that stderr names.
const maxComplaints = 20

func (r *refusals) add(from origin, why *refusal) error {
	if r.reasons[why.reason]++; r.total() <= maxComplaints {
		fmt.Fprintf(r.stderr, "%s: row %d: %s\n", from.File, from.Row, printable(why.Error()))
	}
	if r.file == nil {
		return nil
	}
	line := json.NewEncoder(r.file)
	line.SetEscapeHTML(false)
	return line.Encode(struct {
		origin
		Reason string `json:"reason"`
		Detail string `json:"detail,omitempty"`
	}{from, why.reason, why.detail})
}

func (r *refusals) total() (sum int64) {
	for _, n := range r.reasons {
		sum += n
	}
	return sum
}

func (r *refusals) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
