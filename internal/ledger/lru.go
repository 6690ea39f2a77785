package ledger

import "container/list"

// lru keeps what was used last, up to a limit of weight. It is not safe for concurrent use.
type lru[K comparable, V any] struct {
	limit, weight int
	// order has the least recently used entry last.
	order *list.List
	at    map[K]*list.Element
}

type lruEntry[K comparable, V any] struct {
	key    K
	value  V
	weight int
}

func newLRU[K comparable, V any](limit int) *lru[K, V] {
	return &lru[K, V]{limit: limit, order: list.New(), at: map[K]*list.Element{}}
}

// get returns what is kept under a key, which is used now.
func (l *lru[K, V]) get(key K) (V, bool) {
	e, ok := l.at[key]
	if !ok {
		var none V
		return none, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*lruEntry[K, V]).value, true
}

// put keeps a value, and drops what was not used for longest until the weight is within the limit.
// The newest value stays, however much it weighs.
func (l *lru[K, V]) put(key K, value V, weight int) {
	if e, ok := l.at[key]; ok {
		l.drop(e)
	}
	l.at[key] = l.order.PushFront(&lruEntry[K, V]{key, value, weight})
	l.weight += weight
	for l.weight > l.limit && l.order.Len() > 1 {
		l.drop(l.order.Back())
	}
}

func (l *lru[K, V]) drop(e *list.Element) {
	entry := l.order.Remove(e).(*lruEntry[K, V])
	delete(l.at, entry.key)
	l.weight -= entry.weight
}
