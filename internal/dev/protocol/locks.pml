/*
 * The order of locks: who waits for what, and while it has what. PostgreSQL would end one of two
 * transactions that wait for each other; here each runs once, and a search ends with processes stuck.
 *
 * The advisory locks have the names of package models/locks. A worker only tries for them, and
 * passes over locked rows (SKIP LOCKED), so it never waits with something in its hands, but for the
 * row of a job whose handler has the completing transaction. Whoever else waits takes the document
 * before the queue's row, and the group before the configuration.
 */
#define GROUPS 0         /* configuration groups: shared by chunks */
#define CONFIGURATIONS 1 /* configurations: shared by chunks */
#define DOCUMENT 2       /* the application's row */
#define ROW 3            /* the row of the queue */
#define TYPES 4          /* type leases */
#define QUEUES 5         /* queue leases */
#define ORGANIZATIONS 6  /* organization leases */
#define RECLAIM 7        /* reclaim */
#define ALL 8

byte alone[ALL], shared[ALL]; /* who has it: 1 + _pid; how many share it */

#define FREE(l) (alone[l] == 0 && shared[l] == 0)
#define wait_for(l) atomic { FREE(l) -> alone[l] = _pid + 1 }
#define have(l) atomic { if :: FREE(l) -> alone[l] = _pid + 1 :: else -> goto over fi }
#define share(l) atomic { if :: alone[l] == 0 -> shared[l]++; mine[l] = true :: else -> goto over fi }

#ifdef WORKER_WAITS
#define skip_locked(l) wait_for(l)
#else
#define skip_locked(l) have(l)
#endif

/* COMMIT or ROLLBACK */
inline end_transaction() {
	d_step {
		n = 0;
		do
		:: n < ALL ->
			if
			:: alone[n] == _pid + 1 -> alone[n] = 0
			:: else
			fi;
			if
			:: mine[n] -> shared[n]--; mine[n] = false
			:: else
			fi;
			n++
		:: else -> n = 0; break
		od
	}
}

/* Domain code: it writes its document, and enqueues it (enqueue_accounting_job). */
active [2] proctype Domain() {
	bool mine[ALL]; byte n;
	if
#ifdef ROW_FIRST
	:: true -> wait_for(ROW); wait_for(DOCUMENT)
#endif
	:: true -> wait_for(DOCUMENT); wait_for(ROW)
	fi;
	end_transaction()
}

/* A chunk of documents: queue rows, then the configuration, then documents (ledger.commit). */
active proctype Chunk() {
	bool mine[ALL]; byte n;
	skip_locked(ROW);
	share(GROUPS);
	share(CONFIGURATIONS);
	skip_locked(DOCUMENT);
over:	end_transaction()
}

/* Store.leaseCounted, and daybook.claim_room, which tries for them in another order. */
active [2] proctype Lease() {
	bool mine[ALL]; byte n;
#ifdef LEASE_WAITS
	if
	:: true -> wait_for(QUEUES); wait_for(ORGANIZATIONS)
	:: true -> wait_for(ORGANIZATIONS); wait_for(QUEUES)
	fi;
#else
	if
	:: true -> have(TYPES); have(QUEUES); have(ORGANIZATIONS)
	:: true -> have(ORGANIZATIONS); have(QUEUES)
	fi;
#endif
	skip_locked(ROW);
over:	end_transaction()
}

/* daybook.lock_configuration, and then what failed is made pending. */
active [2] proctype Configuration() {
	bool mine[ALL]; byte n;
	if
#ifdef CONFIGURATION_FIRST
	:: true -> wait_for(CONFIGURATIONS); wait_for(GROUPS)
#endif
	:: true -> wait_for(GROUPS); wait_for(CONFIGURATIONS)
	fi;
	end_transaction()
}

/* Store.reclaim. */
active proctype Reclaimer() {
	bool mine[ALL]; byte n;
	have(RECLAIM);
	skip_locked(ROW);
over:	end_transaction()
}
