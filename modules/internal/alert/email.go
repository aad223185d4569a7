package alert

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"
)

// portTLS is the port on which TLS begins at once
// (https://www.rfc-editor.org/rfc/rfc8314#section-3.3).
const portTLS = 465

// provisionEmail checks the addresses and the server.
func (c *Channel) provisionEmail() error {
	host, text, err := net.SplitHostPort(c.SMTP)
	port, numberErr := strconv.Atoi(text)
	if err != nil || numberErr != nil || host == "" {
		return errors.New("email takes the server that sends mail, as in `smtp mail.example.com:587`")
	}
	if (c.User == "") != (c.Password == "") {
		return errors.New("user and password belong together")
	}
	if _, err := c.mail(message{}); err != nil {
		return err
	}
	options := []mail.Option{mail.WithPort(port), mail.WithTimeout(sendTimeout), mail.WithTLSPolicy(mail.TLSOpportunistic)}
	if c.User != "" { // no password goes over a line that others read
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory), mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(c.User), mail.WithPassword(c.Password))
	}
	if port == portTLS {
		options = append(options, mail.WithSSL())
	}
	c.send = func(ctx context.Context, m message) error {
		letter, err := c.mail(m)
		if err != nil {
			return err
		}
		client, err := mail.NewClient(host, options...)
		if err != nil {
			return err
		}
		return client.DialAndSendWithContext(ctx, letter)
	}
	return nil
}

// mail writes a message. Its id is the same in all attempts.
func (c *Channel) mail(m message) (*mail.Msg, error) {
	letter := mail.NewMsg()
	if err := letter.From(c.From); err != nil {
		return nil, fmt.Errorf("from: %w; it is an email address, as in `from weir@example.com`", err)
	}
	if err := letter.ToFromString(c.Address); err != nil {
		return nil, fmt.Errorf("its address: %w", err)
	}
	_, domain, _ := strings.Cut(strings.TrimSuffix(c.From, ">"), "@")
	letter.SetMessageIDWithValue(m.Delivery.ID + "@" + domain)
	letter.SetDate()
	if m.Firing != nil {
		letter.Subject(m.title())
		var text strings.Builder
		for _, f := range m.facts() {
			fmt.Fprintf(&text, "%s: %s\n", f.Title, f.Value)
		}
		letter.SetBodyString(mail.TypeTextPlain, text.String())
	}
	return letter, nil
}
