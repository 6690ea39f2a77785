package handlers

// Check says what is wrong with the payload that its schema does not say. It is called when a job
// is enqueued.
func (p Webhook) Check() error {
	if p.URL == "" && p.WebhookURL == "" {
		return invalid("url is missing: give url or webhookUrl")
	}
	if _, err := p.target(); err != nil {
		return err
	}
	return nil
}

// Check says what is wrong with the payload that its schema does not say. It is called when a job
// is enqueued.
func (p Email) Check() error {
	switch {
	case len(p.To) == 0:
		return invalid("to is empty: name a recipient")
	case p.Template != "" && (p.Text != "" || p.HTML != ""):
		return invalid("template is given beside text or html: give one of them")
	case p.Template != "" && !secretName.MatchString(p.Template):
		return invalid("template is no template's name: lower-case letters, digits, - and _")
	case p.Template == "" && p.TemplateParams != nil:
		return invalid("templateParams are given without template: name the template")
	case p.Template == "" && p.Text == "" && p.HTML == "":
		return invalid("text is missing: give text, html or both, or a template")
	case p.Template == "" && p.Subject == "":
		return invalid("subject is missing")
	case hasControl(p.Subject):
		return invalid("subject has line breaks or control characters")
	}
	if _, err := p.replyTo(); err != nil {
		return err
	}
	for field, texts := range map[string][]string{"to": p.To, "cc": p.Cc} {
		if _, err := addresses(field, texts); err != nil {
			return err
		}
	}
	return checkAttachments(p.Attachments)
}

// Check says what is wrong with the payload that its schema does not say. It is called when a job
// is enqueued.
func (p Report) Check() error {
	_, _, err := p.span()
	return err
}

// Check says what is wrong with the payload that its schema does not say. It is called when a job
// is enqueued.
func (p DBFunction) Check() error {
	if !functionName.MatchString(p.Function) {
		return invalid("function is not like schema.name, in lower-case letters, digits and _")
	}
	return nil
}
