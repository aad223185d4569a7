package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// The lists in JSON begin with a sum of the rest, because most flipped bits leave JSON that can be
// read. Earlier versions of Weir skip the sum, and write none.

var errSum = errors.New("is damaged: it does not have the sum that was written with it")

// sumPrefix begins the text of an object with a sum.
const sumPrefix = `{"Sum":"`

// withSum returns the text of a JSON object that is not empty, with its sum.
func withSum(object []byte) []byte {
	rest := object[1:]
	return fmt.Appendf(nil, sumPrefix+`%08x",%s`, crc32.Checksum(rest, castagnoli), rest)
}

// parseSummed reads the text of an object, and compares its sum if it has one.
func parseSummed(text []byte, to any) error {
	if err := json.Unmarshal(text, to); err != nil {
		return err
	}
	const head = len(sumPrefix + `01234567",`)
	if bytes.HasPrefix(text, []byte(sumPrefix)) && (len(text) < head || !bytes.Equal(withSum(text[head-1:]), text)) {
		return errSum
	}
	return nil
}
