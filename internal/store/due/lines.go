package due

import "container/heap"

// line has the partitions of a round that are of one slot, as a heap by their organizations'
// numbers.
type line struct {
	slot       string
	partitions []*partition
	// place is where the lease that is being divided has it; -1: the lease has no room of the slot.
	// number is the first organization's there: an organization changes its number in all of its
	// lines at once, and a heap takes one change after the other.
	place, number int
}

// first is the organization that is asked first.
func (l *line) first() *activeOrg { return l.partitions[0].org }

// The methods of heap.Interface.

func (l *line) Len() int { return len(l.partitions) }

func (l *line) Less(i, j int) bool {
	return l.partitions[i].org.number < l.partitions[j].org.number
}

func (l *line) Swap(i, j int) {
	l.partitions[i], l.partitions[j] = l.partitions[j], l.partitions[i]
	l.partitions[i].place, l.partitions[j].place = i, j
}

func (l *line) Push(at any) {
	at.(*partition).place = len(l.partitions)
	l.partitions = append(l.partitions, at.(*partition))
}

func (l *line) Pop() any {
	n := len(l.partitions) - 1
	at := l.partitions[n]
	l.partitions[n], l.partitions = nil, l.partitions[:n]
	return at
}

// join puts an active partition into the line of its slot.
func (rd *round) join(at *partition) {
	l := rd.lines[at.key.Slot]
	if l == nil {
		l = &line{slot: at.key.Slot, place: -1}
		rd.lines[at.key.Slot] = l
	}
	at.line = l
	heap.Push(l, at)
}

// leave takes a partition out of its line.
func (rd *round) leave(at *partition) {
	heap.Remove(at.line, at.place)
	if len(at.line.partitions) == 0 {
		delete(rd.lines, at.line.slot)
	}
	at.line = nil
}

// toBack puts an organization behind all others, also in the lines that a lease goes through.
func (rd *round) toBack(org *activeOrg, through *lines) {
	rd.last++
	org.renumber(rd.last)
	for _, at := range org.partitions {
		if at.line.place >= 0 {
			at.line.number = at.line.first().number
			heap.Fix(through, at.line.place)
		}
	}
}

// toFront puts an organization before all others, while no lease is being divided.
func (rd *round) toFront(org *activeOrg) {
	rd.first--
	org.renumber(rd.first)
}

// renumber gives an organization another place in the order, in each of its lines.
func (o *activeOrg) renumber(number int) {
	o.number = number
	for _, at := range o.partitions {
		heap.Fix(at.line, at.place)
	}
}

// lines are those of a round that a lease goes through, as a heap by which organization is asked first.
type lines []*line

// merge are all lines of the round.
func (rd *round) merge() lines {
	all := make(lines, 0, len(rd.lines))
	for _, l := range rd.lines {
		l.place, l.number = len(all), l.first().number
		all = append(all, l)
	}
	heap.Init(&all)
	return all
}

// The methods of heap.Interface.

func (ls *lines) Len() int { return len(*ls) }

func (ls *lines) Less(i, j int) bool { return (*ls)[i].number < (*ls)[j].number }

func (ls *lines) Swap(i, j int) {
	all := *ls
	all[i], all[j] = all[j], all[i]
	all[i].place, all[j].place = i, j
}

// Push is not called.
func (ls *lines) Push(l any) { *ls = append(*ls, l.(*line)) }

func (ls *lines) Pop() any {
	n := len(*ls) - 1
	l := (*ls)[n]
	l.place = -1
	*ls = (*ls)[:n]
	return l
}
