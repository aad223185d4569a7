package observe

// rank orders the fields that may have the type of an error. The highest wins.
type rank uint8

const (
	noError rank = iota
	anyError
	numberedError
	namedError
	typedError
)

// failure takes what an error says of itself.
func (x *observer) failure(f Field, v value) {
	switch f {
	case Error:
		if v.kind == object || v.kind == text && len(v.bytes) > 0 {
			x.fail(anyError, "error")
		}
	case ErrorMessage:
		if v.kind == text && len(v.bytes) > 0 {
			x.fail(anyError, "error")
		}
	case objectName:
		if string(v.bytes) == "error" {
			x.failed = true
			x.fail(anyError, "error")
		}
	case ErrorType:
		x.failAs(typedError, v)
	case ErrorCode:
		x.failAs(namedError, v)
	case ownErrorType:
		if x.failed {
			x.failAs(typedError, v)
		}
	case ownErrorCode:
		if x.failed {
			x.failAs(namedError, v)
		}
	}
}

// failAs takes the type or code of an error; a code may be a number.
func (x *observer) failAs(r rank, v value) {
	switch {
	case v.kind == text && len(v.bytes) > 0:
		x.fail(r, string(v.bytes))
	case v.kind == number:
		x.fail(numberedError, string(v.bytes))
	}
}

// fail keeps the best name of the first error.
func (x *observer) fail(r rank, name string) {
	if r > x.cause {
		x.cause, x.seen.ErrorType = r, name
	}
}
