package observe

// detailCount is an element of a list of counts by modality (Gemini) or by lifetime
// (Bedrock), while it is read: name and count come in any order.
type detailCount struct {
	name  [len("AUDIO")]byte // longer ones are none that counts
	n     int
	list  Field
	count int64
}

// listed takes what an element of such a list says.
func (x *observer) listed(f Field, v value) {
	d := &x.detail
	switch f {
	case detail:
		*d = detailCount{}
	case detailName:
		d.n = copy(d.name[:], v.bytes)
	default:
		n, ok := parseCount(v.bytes)
		if !ok {
			return
		}
		d.list, d.count = f, n
	}
	if to := d.means(); to != none {
		x.report.set(to, d.count)
		x.changed = true
	}
}

// means is the count of a report that the element is, once it is known.
func (d *detailCount) means() Field {
	name := string(d.name[:d.n])
	switch d.list {
	case inputDetail:
		switch name {
		case "AUDIO", "audio":
			return InputAudio
		case "IMAGE", "image":
			return InputImage
		}
	case cachedDetail:
		if name == "AUDIO" || name == "audio" {
			return CacheReadAudio
		}
	case outputDetail:
		switch name {
		case "AUDIO", "audio":
			return OutputAudio
		case "IMAGE", "image":
			return OutputImage
		}
	case writtenDetail:
		switch name {
		case "5m":
			return CacheWrite5m
		case "1h":
			return CacheWrite1h
		}
	}
	return none
}
