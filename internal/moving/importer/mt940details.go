package importer

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// mtDetails is what field 86 says about an entry.
type mtDetails struct {
	name, account, endToEnd, mandate, text, code string
	// refersTo is a structured reference of the payee's.
	refersTo []string
	// returned: the entry takes back a payment.
	returned bool
}

// mtDetailsOf reads field 86 in the forms that banks give it: numbered parts, as in Germany, Austria
// and Poland; code words between slashes, as in the Netherlands; else it is a text.
func mtDetailsOf(information string) mtDetails {
	information = trimmed(information)
	if len(information) > 6 && allDigits(information[:3]) && allDigits(information[4:6]) &&
		strings.ContainsRune("?<>~^|", rune(information[3])) {
		return mtNumbered(information[:3], information[3:4], information[3:])
	}
	if mtWord.MatchString(information) && strings.HasPrefix(information, "/") {
		return mtWords(information)
	}
	return mtDetails{text: information}
}

// mtReturns are the codes of payments that were returned: direct debits of two schemes, transfers.
var mtReturns = []string{"108", "109", "159"}

// mtPartWidth is how many characters a numbered part has at most.
const mtPartWidth = 27

// mtNumbered reads ?00booking text?20…?29 and ?60…?63 what it is for?30bank?31account?32?33name.
func mtNumbered(code, sign, parts string) mtDetails {
	var purpose, names []string
	d := mtDetails{code: code}
	booking := ""
	for part := range strings.SplitSeq(parts, sign) {
		if len(part) < 2 || !allDigits(part[:2]) {
			if len(purpose) > 0 && part != "" { // the sign itself stands in the text
				purpose[len(purpose)-1] += sign + part
			}
			continue
		}
		switch number, text := part[:2], part[2:]; {
		case number == "00":
			booking = text
		case number >= "20" && number <= "29", number >= "60" && number <= "63":
			purpose = append(purpose, text)
		case number == "31":
			d.account = withoutSpaces(text)
		case number == "32", number == "33":
			names = append(names, text)
		}
	}
	d.name = stated(mtJoin(names, mtPartWidth))
	d.sepa(mtJoin(purpose, mtPartWidth))
	if d.text == "" {
		d.text = stated(booking)
	}
	d.returned = slices.Contains(mtReturns, code)
	return d
}

// mtSEPA are the words that stand before the parts of what a payment is for.
var mtSEPA = regexp.MustCompile(`(EREF|KREF|MREF|CRED|DEBT|COAM|OAMT|SVWZ|ABWA|ABWE|IBAN|BIC|PURP)\+`)

// sepa takes what a payment is for.
func (d *mtDetails) sepa(purpose string) {
	places := mtSEPA.FindAllStringSubmatchIndex(purpose, -1)
	if places == nil {
		d.text = stated(purpose)
		return
	}
	texts := []string{purpose[:places[0][0]]}
	for i, p := range places {
		end := len(purpose)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		value := stated(purpose[p[1]:end])
		switch purpose[p[2]:p[3]] {
		case "EREF":
			d.endToEnd = withoutSpaces(value)
		case "MREF":
			d.mandate = withoutSpaces(value)
		case "SVWZ":
			texts = append(texts, value)
		case "IBAN":
			d.account = cmp.Or(d.account, withoutSpaces(value))
		case "ABWA", "ABWE": // who pays for another, or is paid for another
			d.name = cmp.Or(d.name, value)
		}
	}
	d.text = joined(texts)
}

// mtWord is a code word that begins a part; its value goes on to the next one.
var mtWord = regexp.MustCompile(
	`/(TRTP|IBAN|BIC|NAME|REMI|EREF|ORDP|BENM|CNTP|MARF|CSID|ISDT|PREF|RTRN|ULTD|ULTC|ULTB|ADDR|PURP|TRCD|OCMT|CHGS|EXCH|OGB|VA)/`)

// mtWords reads /NAME/…/IBAN/…/REMI/…/EREF/….
func mtWords(information string) mtDetails {
	var d mtDetails
	kind := ""
	places := mtWord.FindAllStringSubmatchIndex(information, -1)
	texts := []string{information[:places[0][0]]}
	for i, p := range places {
		end := len(information)
		// The slash that ends one word may begin the next.
		if i+1 < len(places) {
			end = max(places[i+1][0], p[1])
		}
		value := stated(information[p[1]:end])
		switch information[p[2]:p[3]] {
		case "NAME":
			d.name = cmp.Or(d.name, strings.Trim(value, "/ "))
		case "IBAN":
			d.account = cmp.Or(d.account, withoutSpaces(strings.Trim(value, "/")))
		case "CNTP": // account/bank/name/place
			parts := strings.Split(value, "/")
			d.account = cmp.Or(d.account, withoutSpaces(parts[0]))
			if len(parts) > 2 {
				d.name = cmp.Or(d.name, trimmed(parts[2]))
			}
		case "EREF":
			d.endToEnd = stated(strings.Trim(value, "/ "))
		case "MARF":
			d.mandate = strings.Trim(value, "/ ")
		case "TRTP":
			kind = value
		case "REMI", "BENM", "ORDP":
			if reference, structured := strings.CutPrefix(value, "STRD/CUR/"); structured {
				d.refersTo = statedEach([]string{strings.Trim(reference, "/ ")})
			}
			texts = append(texts, strings.Trim(strings.TrimPrefix(strings.TrimPrefix(value, "USTD//"), "STRD/CUR/"), "/ "))
		case "RTRN":
			d.returned = true
			texts = append(texts, value)
		}
	}
	d.text = cmp.Or(joined(texts), kind)
	return d
}
