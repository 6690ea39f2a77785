package listing

// SetScan has searches read no more than n rows for a page.
func (l *Listing) SetScan(n int) { l.scan = n }
