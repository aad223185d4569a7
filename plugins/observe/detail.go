package observe

// detailCount is an element of a list of counts by modality (Gemini) or by
// lifetime (Bedrock), as far as it was read: name and count come in any order.
type detailCount struct {
	name  [len("AUDIO")]byte // longer ones are none that counts
	n     int
	list  field
	count int64
}

// listed takes what an element of such a list says.
func (x *observer) listed(f field, v value) {
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
func (d *detailCount) means() field {
	name := string(d.name[:d.n])
	switch d.list {
	case inputDetail:
		switch name {
		case "AUDIO":
			return inputAudio
		case "IMAGE":
			return inputImage
		}
	case cachedDetail:
		if name == "AUDIO" {
			return cacheReadAudio
		}
	case outputDetail:
		switch name {
		case "AUDIO":
			return outputAudio
		case "IMAGE":
			return outputImage
		}
	case writtenDetail:
		switch name {
		case "5m":
			return cacheWrite5m
		case "1h":
			return cacheWrite1h
		}
	}
	return none
}
