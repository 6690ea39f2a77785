package handlers

import (
	"bytes"
	"encoding/json"
	netmail "net/mail"
	"slices"
	"strings"

	"github.com/wneessen/go-mail"
)

// Recipients are addresses. In JSON they are a list, or one text.
type Recipients []string

// UnmarshalJSON reads a list of texts, or one text. Anything else becomes an address that is
// refused as such.
func (r *Recipients) UnmarshalJSON(raw []byte) error {
	var one string
	var list []string
	switch {
	case bytes.Equal(raw, []byte("null")):
		*r = nil
	case json.Unmarshal(raw, &one) == nil:
		*r = Recipients{one}
	case json.Unmarshal(raw, &list) == nil:
		*r = list
	default:
		*r = Recipients{""}
	}
	return nil
}

// MarshalJSON writes a list.
func (r Recipients) MarshalJSON() ([]byte, error) { return json.Marshal([]string(r)) }

// TemplateParams are the parameters of a template. Their numbers are kept as JSON writes them.
type TemplateParams map[string]any

// UnmarshalJSON reads an object.
func (p *TemplateParams) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var members map[string]any
	if err := decoder.Decode(&members); err != nil {
		return err
	}
	*p = members
	return nil
}

// replyTo is where answers go, by whichever name the payload has it.
func (p *Email) replyTo() (string, error) {
	if p.ReplyTo != "" && p.ReplyToCamel != "" && p.ReplyTo != p.ReplyToCamel {
		return "", invalid("reply_to and replyTo differ: give one of them")
	}
	if p.ReplyTo != "" {
		return p.ReplyTo, nil
	}
	return p.ReplyToCamel, nil
}

// compose fills the template that a payload names.
func (h *EmailHandler) compose(p Email) (Email, error) {
	if err := p.Check(); err != nil || p.Template == "" {
		return p, err
	}
	mail, err := h.templates.Render(p.Template, p.TemplateParams)
	if err != nil {
		return p, err
	}
	p.Text, p.HTML = mail.Text, mail.HTML
	if p.Subject == "" {
		p.Subject = mail.Subject
	}
	return p, nil
}

// message makes the message of a payload, and counts its recipients.
func (h *EmailHandler) message(p *Email, id string) (*mail.Msg, int, error) {
	count := len(p.To) + len(p.Cc)
	if count > h.config.MaxRecipients {
		return nil, 0, invalid("to and cc have %d addresses, more than %d", count, h.config.MaxRecipients)
	}
	to, err := addresses("to", p.To)
	if err != nil {
		return nil, 0, err
	}
	cc, err := addresses("cc", p.Cc)
	if err != nil {
		return nil, 0, err
	}
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := h.address(m, p); err != nil {
		return nil, 0, err
	}
	m.SetAddrHeaderFromMailAddress(mail.HeaderTo, to...)
	if len(cc) > 0 {
		m.SetAddrHeaderFromMailAddress(mail.HeaderCc, cc...)
	}
	m.Subject(p.Subject)
	m.SetMessageIDWithValue(id)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	switch {
	case p.HTML == "":
		m.SetBodyString(mail.TypeTextPlain, p.Text)
	case p.Text == "":
		m.SetBodyString(mail.TypeTextHTML, p.HTML)
	default:
		m.SetBodyString(mail.TypeTextPlain, p.Text)
		m.AddAlternativeString(mail.TypeTextHTML, p.HTML)
	}
	return m, count, nil
}

// address sets the sender and where answers go, if the configuration allows those that the payload
// names.
func (h *EmailHandler) address(m *mail.Msg, p *Email) error {
	m.FromMailAddress(h.from)
	if p.From != "" {
		from, err := addresses("from", []string{p.From})
		if err != nil {
			return err
		}
		if !strings.EqualFold(from[0].Address, h.from.Address) && !allowed(h.config.Senders, from[0].Address) {
			return invalid("from: the sender may not be %s: %sSMTP_SENDERS names the addresses and domains that are "+
				"allowed besides %sSMTP_FROM", clip(from[0].Address), environmentPrefix, environmentPrefix)
		}
		m.FromMailAddress(from[0])
	}
	replyTo, err := p.replyTo()
	if err != nil || replyTo == "" {
		return err
	}
	reply, err := addresses("reply_to", []string{replyTo})
	if err != nil {
		return err
	}
	if len(h.config.ReplyTo) > 0 && !allowed(h.config.ReplyTo, reply[0].Address) {
		return invalid("reply_to: answers may not go to %s: %sSMTP_REPLY_TO names the addresses and domains that are "+
			"allowed", clip(reply[0].Address), environmentPrefix)
	}
	m.ReplyToMailAddress(reply...)
	return nil
}

// allowed reports whether a list of addresses and domains (@example.com) has an address.
func allowed(list []string, address string) bool {
	_, domain, _ := strings.Cut(address, "@")
	return slices.ContainsFunc(list, func(entry string) bool {
		entry = strings.TrimSpace(entry)
		return strings.EqualFold(entry, address) || strings.EqualFold(entry, "@"+domain)
	})
}

// addresses reads addresses; nothing in one may end a header's line or an SMTP command.
func addresses(field string, texts []string) ([]*netmail.Address, error) {
	parsed := make([]*netmail.Address, len(texts))
	for i, text := range texts {
		a, err := netmail.ParseAddress(text)
		if err != nil || hasControl(text) || hasControl(a.Name) || hasControl(a.Address) ||
			strings.ContainsAny(a.Address, "<> ") {
			return nil, invalid("%s: address %d is not like name@example.com or Name <name@example.com>", field, i+1)
		}
		parsed[i] = a
	}
	return parsed, nil
}
