package redact

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// UTF8 returns a JSON text in UTF-8. UTF-16 and UTF-32, which some servers take, begin with
// a byte order mark, or have zeros beside the two ASCII letters with which a JSON text begins
// (RFC 4627, section 3). All else is returned as it is.
func UTF8(body []byte) []byte {
	if len(body) < 4 {
		return body
	}
	mark := func(text string) bool { return string(body[:len(text)]) == text }
	zero := func(i int) bool { return body[i] == 0 }
	switch {
	case mark("\x00\x00\xfe\xff"), zero(0) && zero(1) && zero(2) && !zero(3):
		return decode(body, 4, func(b []byte) rune { return rune(binary.BigEndian.Uint32(b)) })
	case mark("\xff\xfe\x00\x00"), !zero(0) && zero(1) && zero(2) && zero(3):
		return decode(body, 4, func(b []byte) rune { return rune(binary.LittleEndian.Uint32(b)) })
	case mark("\xfe\xff"), zero(0) && !zero(1) && zero(2) && !zero(3):
		return decode(body, 2, func(b []byte) rune { return rune(binary.BigEndian.Uint16(b)) })
	case mark("\xff\xfe"), !zero(0) && zero(1) && !zero(2) && zero(3):
		return decode(body, 2, func(b []byte) rune { return rune(binary.LittleEndian.Uint16(b)) })
	}
	return body
}

// decode reads letters of some bytes each. The second half of a surrogate pair belongs to the
// letter before.
func decode(body []byte, width int, unit func([]byte) rune) []byte {
	text := make([]byte, 0, len(body)/width)
	for high := rune(0); len(body) >= width; body = body[width:] {
		r := unit(body)
		pair := utf16.DecodeRune(high, r)
		switch {
		case pair != utf8.RuneError:
			r, high = pair, 0
		case utf16.IsSurrogate(r):
			high = r
			continue
		}
		text = utf8.AppendRune(text, r)
	}
	return text
}
