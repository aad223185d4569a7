package plugins

import "testing"

// In whatever words a vendor refuses the reasoning of earlier turns, Weir knows it.
func TestReasoningIsRefused(t *testing.T) {
	for _, c := range []struct {
		status        int
		code, message string
		want          bool
	}{
		{400, "invalid_encrypted_content", "The encrypted content could not be verified.", true},
		{400, "", "The encrypted content gAAA...Q== for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed. trace_id: 1", true},
		{400, "", "reasoning `encrypted_content` was not issued to this caller", true},
		{400, "", "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.", true},
		{400, "", "Thought signature is not valid.", true},
		{400, "", "Corrupted thought signature.", true},
		{400, "", "Function call is missing a thought_signature in functionCall parts.", false},
		{400, "", "messages.1: the signature of the file is invalid", false},
		{500, "invalid_encrypted_content", "", false},
	} {
		e := Refused(c.status, c.message)
		e.Reported = c.code
		if got := e.RefusesReasoning(); got != c.want {
			t.Errorf("%d %s %s: %v", c.status, c.code, c.message, got)
		}
	}
}
