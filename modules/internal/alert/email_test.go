package alert

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/weirhq/weir/storage/control"
)

// mailbox is a mail server that takes all letters, without TLS. It returns its address, the
// letters, and the commands that it got beside them.
func mailbox(t *testing.T) (address string, letters, commands chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	letters, commands = make(chan string, 10), make(chan string, 100)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				in := bufio.NewScanner(connection)
				fmt.Fprint(connection, "220 mail.example.com\r\n")
				for in.Scan() {
					line := in.Text()
					commands <- line
					switch verb, _, _ := strings.Cut(strings.ToUpper(line), " "); verb {
					case "EHLO":
						fmt.Fprint(connection, "250-mail.example.com\r\n250 AUTH PLAIN LOGIN\r\n")
					case "DATA":
						fmt.Fprint(connection, "354 go on\r\n")
						var letter strings.Builder
						for in.Scan() && in.Text() != "." {
							letter.WriteString(in.Text() + "\n")
						}
						letters <- letter.String()
						fmt.Fprint(connection, "250 taken\r\n")
					case "QUIT":
						fmt.Fprint(connection, "221 bye\r\n")
						return
					default:
						fmt.Fprint(connection, "250 ok\r\n")
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), letters, commands
}

// An email says what fires. All attempts have one id, so that a mailbox can tell them apart from
// another alert.
func TestEmail(t *testing.T) {
	address, letters, _ := mailbox(t)
	c := Channel{Name: "ops", Kind: "email", SMTP: address, From: "Weir <weir@example.com>", Address: "ops@example.com, boss@example.com"}
	if err := c.Provision(); err != nil {
		t.Fatal(err)
	}
	f := &control.Firing{ID: "alert_1", Org: "acme", Rule: "dear", Per: "user", Subject: "ada\r\nBcc: all@example.com", Condition: "cost > 10 over 1h", Value: 12.5, FiredAt: 1767225600000}
	m := message{f, control.Delivery{ID: "msg_1", State: control.StateFiring}}
	for range 2 {
		if err := c.send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		letter := <-letters
		head, body, _ := strings.Cut(letter, "\n\n")
		for _, part := range []string{"Message-ID: <msg_1@example.com>", "ops@example.com", "boss@example.com", "Subject: "} {
			if !strings.Contains(head, part) {
				t.Errorf("no %q in %s", part, head)
			}
		}
		if strings.Contains(head, "\nBcc:") {
			t.Errorf("a subject adds a field: %s", head)
		}
		for _, part := range []string{"Condition: cost > 10 over 1h", "Value when it fired: 12.5", "Alert: alert_1"} {
			if !strings.Contains(body, part) {
				t.Errorf("no %q in %s", part, body)
			}
		}
	}
}

// A password goes over no line that others can read.
func TestEmailKeepsItsPassword(t *testing.T) {
	address, letters, commands := mailbox(t)
	c := Channel{Name: "ops", Kind: "email", SMTP: address, From: "weir@example.com", Address: "ops@example.com", User: "weir", Password: "hunter2"}
	if err := c.Provision(); err != nil {
		t.Fatal(err)
	}
	if err := c.send(t.Context(), message{&control.Firing{Rule: "dear"}, control.Delivery{ID: "msg_1"}}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("without TLS it says %v", err)
	}
	for len(commands) > 0 {
		line := <-commands
		if strings.HasPrefix(strings.ToUpper(line), "AUTH") {
			t.Errorf("it says %s", line)
		}
	}
	if len(letters) > 0 {
		t.Error("it was sent")
	}
}
