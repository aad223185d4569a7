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

// eachRecord reads an answer, {"data": [...], "error": null} or several of them, and
// calls record with the elements of data as they come, until it returns false.
func eachRecord(answer io.Reader, record func(gjson.Result) bool) error {
	d := json.NewDecoder(answer)
	for {
		more, err := eachInEnvelope(d, record)
		if err != nil || !more {
			return err
		}
		if !d.More() { // at its end, or broken off
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return broken(err)
		}
	}
}

// eachInEnvelope reads one of them. more is false when record wants no more.
func eachInEnvelope(d *json.Decoder, record func(gjson.Result) bool) (more bool, err error) {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false, errNoEnvelope
	}
	found := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return false, broken(err)
		}
		var value json.RawMessage
		if name != "data" {
			if err := d.Decode(&value); err != nil {
				return false, broken(err)
			}
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return false, errNoEnvelope
		}
		found = true
		for d.More() {
			if err := d.Decode(&value); err != nil {
				return false, broken(err)
			}
			if !record(gjson.ParseBytes(value)) {
				return false, nil
			}
		}
		if _, err := d.Token(); err != nil {
			return false, broken(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return false, broken(err)
	}
	if !found {
		return false, errNoEnvelope
	}
	return true, nil
}

func broken(err error) error { return fmt.Errorf("%w: %w", errBroken, err) }
