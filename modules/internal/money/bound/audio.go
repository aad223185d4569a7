package bound

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"io"
	"strings"

	"github.com/tidwall/gjson"
)

// lowestSampleRate is the lowest that plain samples are taken with, in samples a second.
const lowestSampleRate = 8000

// HasLowestRate reports whether audio takes at least UpperBound.SpeechBytes a second, as plain
// samples and MP3 do. In other formats silence takes next to no bytes: a frame of FLAC has
// up to 65,535 equal samples, and one of Opus may be empty. The bytes tell the format, for
// names and types are what the client says.
func HasLowestRate(audio io.Reader) bool {
	r := bufio.NewReader(audio)
	head, _ := r.Peek(12)
	switch {
	case len(head) < 12:
		return false
	case string(head[:4]) == "RIFF" && string(head[8:]) == "WAVE":
		_, err := r.Discard(12)
		return err == nil && isPlain(r)
	case string(head[:3]) == "ID3": // decoders skip the tag, and whatever follows they take (https://id3.org/id3v2.4.0-structure)
		if _, err := r.Discard(10 + int(head[6])<<21 + int(head[7])<<14 + int(head[8])<<7 + int(head[9])); err != nil {
			return false
		}
	}
	return isMP3(r)
}

// isPlain reads the chunks of a WAVE file up to the samples. Of two formats, decoders differ
// in which they take.
func isPlain(r *bufio.Reader) (plain bool) {
	for {
		var chunk struct {
			Name [4]byte
			Size uint32
		}
		if err := binary.Read(r, binary.LittleEndian, &chunk); err != nil {
			return false
		}
		switch string(chunk.Name[:]) {
		case "data":
			return plain
		case "fmt ":
			format, err := r.Peek(26)
			if err != nil || plain {
				return false
			}
			kind := binary.LittleEndian.Uint16(format)
			if kind == 0xfffe && chunk.Size >= 40 { // the kind is where the extension names it
				kind = binary.LittleEndian.Uint16(format[24:])
			}
			if kind != 1 && kind != 3 || binary.LittleEndian.Uint32(format[4:]) < lowestSampleRate { // integers, floats
				return false
			}
			plain = true
		}
		if _, err := r.Discard(int(chunk.Size + chunk.Size&1)); err != nil {
			return false
		}
	}
}

// Bit rates in kbit/s and sample rates in Hz of MP3's versions 1 and 2, by the indexes of a
// frame's header. Version 2.5 has half the sample rates of version 2.
var (
	mp3BitRates    = [2][15]int{{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}, {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}}
	mp3SampleRates = [3]int{44100, 48000, 32000}
)

// isMP3 reports whether the first three frames are MP3's. Each frame says how long it is.
func isMP3(r *bufio.Reader) bool {
	for range 3 {
		h, err := r.Peek(4)
		if err != nil || h[0] != 0xff || h[1]&0xe6 != 0xe2 || h[1]>>3&3 == 1 || h[2]>>4 == 0 || h[2]>>4 == 15 || h[2]>>2&3 == 3 {
			return false
		}
		version := h[1] >> 3 & 3 // 3 is 1, 2 is 2, 0 is 2.5
		sampleRate, samples, bitRates := mp3SampleRates[h[2]>>2&3], 1152, mp3BitRates[0]
		if version != 3 {
			sampleRate, samples, bitRates = sampleRate/2, 576, mp3BitRates[1]
		}
		if version == 0 {
			sampleRate /= 2
		}
		if _, err := r.Discard(samples/8*1000*bitRates[h[2]>>4]/sampleRate + int(h[2]>>1&1)); err != nil {
			return false
		}
	}
	return true
}

// readAudio reads the value of input_audio: base64, or an object that has base64.
func (d *Demand) readAudio(v gjson.Result) {
	if v.IsObject() {
		v = d.once(v, "data")
	}
	data := gjson.Parse(v.Raw).Str // the whole text: the callers may have seen only its beginning
	if _, encoded, ok := strings.Cut(data, ";base64,"); ok {
		data = encoded
	}
	d.Audio += (int64(len(data))*3/4/UpperBound.SpeechBytes + 1) * UpperBound.SpeechTokens
	d.Unbounded = d.Unbounded || !HasLowestRate(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
}
