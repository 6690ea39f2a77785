package due

// Known returns all partitions with their cursors.
func (p *Partitions) Known() (all []Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.byKey {
		all = append(all, Place{at.key, at.cursor})
	}
	return all
}
