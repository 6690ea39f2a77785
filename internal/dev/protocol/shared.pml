/*
 * A shared transaction: the functions that handlers gave to InTx run one after another in one
 * transaction, each behind a savepoint (internal/engine/work_shared.go, internal/store/tx_share.go),
 * and those that it does not complete run alone (internal/engine/work_transaction.go).
 *
 * One of the jobs fails whenever its function runs: its policy counts that attempt. Of the others
 * each has its effect exactly once, and none is charged for its neighbour. FAULTS bounds how often
 * the transaction is lost, or its COMMIT unanswered. A step in a transaction (engine.StepInTx) is a
 * shared one with one job: it looks first whether the one before was kept.
 */
#define JOBS 3
#define BAD 1 /* the job whose function fails */
#define FAULTS 2

byte effects[JOBS], written[JOBS]; /* committed, and written by the open transaction */
bool completed[JOBS], charged[JOBS], done[JOBS];
bool cancelled; /* another request cancels job 2, once the transaction may have begun */
bool answered; /* what the shared transaction completed is known */
byte faults = FAULTS, n;

/* What a completion compares: a completed job is not the turn's any more. */
#ifdef NO_LEASE
#define LOST(j) false
#else
#define LOST(j) completed[j]
#endif

/* completeWorked, with the COMMIT: all that is done, or nothing. */
inline commit(all) {
	n = 0;
	do
	:: n < JOBS ->
		if
		:: all || done[n] ->
			effects[n] = effects[n] + written[n];
			if
			:: done[n] -> completed[n] = true
			:: else
			fi
		:: else
		fi;
		written[n] = 0; done[n] = false; n++
	:: else -> n = 0; break
	od
}

inline rollback() {
	n = 0;
	do
	:: n < JOBS -> written[n] = 0; done[n] = false; n++
	:: else -> n = 0; break
	od
}

/* sharedWork.run: lock, a function behind each savepoint, Keep or Undo, Complete and COMMIT. */
inline together() {
	byte j = 0;
	do
	:: atomic { j < JOBS && !(completed[j] || (j == 2 && cancelled)) -> /* LockChunk */
		written[j]++;
		if
		:: j == BAD ->
#ifndef NO_SAVEPOINT
			written[j] = 0 /* Undo: ROLLBACK TO SAVEPOINT */
#endif
		:: else -> done[j] = true /* Keep */
		fi;
		j++ }
	:: atomic { j < JOBS && (completed[j] || (j == 2 && cancelled)) -> j++ }
	:: j == JOBS -> break
	od;
	if
	:: atomic { true ->
#ifdef NO_SAVEPOINT
		commit(true)
#else
		commit(false)
#endif
		answered = true }
	:: atomic { faults > 0 -> faults--; rollback() }       /* ErrSpoilt, a conflict, an outage */
	:: atomic { faults > 0 -> faults--; commit(false) }    /* the answer is lost */
	fi
}

/* completion.run: the job alone, under its lease, until it is known. */
inline alone(j) {
	do
	:: answered && completed[j] -> break
	:: atomic { !(answered && completed[j]) && !LOST(j) && !(j == 2 && cancelled) ->
		if
		:: j == BAD -> charged[j] = true; break
		:: else ->
			effects[j]++; completed[j] = true;
			if
			:: break
			:: faults > 0 -> faults-- /* unanswered: again */
			fi
		fi }
	:: LOST(j) -> break /* ErrLeaseLost */
	:: j == 2 && cancelled -> break
	od
}

proctype Sharing() {
	together();
#ifdef CHARGE_ALL
	charged[0] = !completed[0]; /* the failure is that of all in the transaction */
#endif
	alone(0); alone(1); alone(2);
	assert(effects[0] == 1 && !charged[0]);
	assert(effects[BAD] == 0 && charged[BAD]);
	assert(effects[2] == 1 || (cancelled && effects[2] == 0));
	assert(effects[2] == completed[2])
}

proctype Requester() {
	if
	:: atomic { !completed[2] -> cancelled = true }
	:: true
	fi
}

init {
	atomic { run Sharing(); run Requester() }
}
