package llmcommand

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tidwall/gjson"
)

var (
	// errNoEnvelope is an answer that is not the query API's.
	errNoEnvelope = errors.New("the answer is no envelope with an array of data")
	// errBroken is an answer that broke off.
	errBroken = errors.New("the answer broke off")
)

// eachRecord reads an answer, {"data": [...], "error": null}, and calls record
// with the elements of data as they come, until it returns false.
func eachRecord(answer io.Reader, record func(gjson.Result) bool) error {
	d := json.NewDecoder(answer)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errNoEnvelope
	}
	found := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return broken(err)
		}
		var value json.RawMessage
		if name != "data" {
			if err := d.Decode(&value); err != nil {
				return broken(err)
			}
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return errNoEnvelope
		}
		found = true
		for d.More() {
			if err := d.Decode(&value); err != nil {
				return broken(err)
			}
			if !record(gjson.ParseBytes(value)) {
				return nil
			}
		}
		if _, err := d.Token(); err != nil {
			return broken(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return broken(err)
	}
	if !found {
		return errNoEnvelope
	}
	return nil
}

func broken(err error) error { return fmt.Errorf("%w: %w", errBroken, err) }
