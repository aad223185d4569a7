package intake

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weirhq/weir/plugins"
)

// Unmarshal parses a body in protobuf into m, once there is memory for its messages: an
// empty one takes two bytes on the wire, and hundreds when it is parsed.
func (b *Body) Unmarshal(ctx context.Context, m proto.Message) error {
	count, depth, ok := messages(b.Bytes, m.ProtoReflect().Descriptor(), maxDepth+1)
	if ok {
		if err := b.check(ctx, int64(len(b.Bytes)), count, depth); err != nil {
			return err
		}
		ok = proto.Unmarshal(b.Bytes, m) == nil
	}
	if !ok {
		return plugins.Invalid("", "The body is no %s in protobuf.", m.ProtoReflect().Descriptor().Name())
	}
	return nil
}

// messages counts a message and those in it, and how deep they are nested, down to a
// number of levels. ok is false if the bytes are no message.
func messages(body []byte, m protoreflect.MessageDescriptor, levels int) (count, depth int, ok bool) {
	count, depth = 1, 1
	for levels > 0 && len(body) > 0 {
		number, kind, n := protowire.ConsumeTag(body)
		if n < 0 {
			return count, depth, false
		}
		body = body[n:]
		size := protowire.ConsumeFieldValue(number, kind, body)
		if size < 0 {
			return count, depth, false
		}
		if field := m.Fields().ByNumber(number); kind == protowire.BytesType && field != nil && field.Message() != nil {
			inner, _ := protowire.ConsumeBytes(body)
			within, deep, valid := messages(inner, field.Message(), levels-1)
			if !valid {
				return count, depth, false
			}
			count, depth = count+within, max(depth, 1+deep)
		}
		body = body[size:]
	}
	return count, depth, true
}
