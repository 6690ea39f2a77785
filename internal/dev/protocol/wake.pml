/*
 * The wake-up: a transaction that enqueues notifies only while a waiter waits (daybook.must_wake,
 * package internal/store/wake).
 *
 * The waker of a process holds the exclusive lock "wakers" while it waits for notifications. An
 * enqueuing transaction tries for the same lock, shared: if it gets it, nobody waits and it notifies
 * nothing, and the lock, which it has until it ends, keeps wakers from waiting. Timers are left out
 * but for those that the protocol counts on: a waker without the lock scans again after a tick, and
 * one that hears that another process died, or gave the lock up, tries for the lock. So a job that
 * nothing announces is a waker that waits for ever: a search that ends with work left.
 */
#define WAKERS 2
#define JOBS 2

bool exclusive[WAKERS];             /* who holds the lock */
byte shared;                        /* how many enqueuing transactions hold it, shared */
bool listens[WAKERS], told[WAKERS]; /* LISTEN, and a notification that was not heard yet */
byte due;                           /* committed jobs that no scan has found */
byte jobs = JOBS;                   /* to be enqueued */
byte leaves = 1, kills = 1;         /* how often a waker may give the lock up, and be killed */

#define TAKEN (exclusive[0] || exclusive[1])
#ifdef NO_NOTIFY
#define notify() skip
#else
#define notify() told[0] = told[0] || listens[0]; told[1] = told[1] || listens[1]
#endif

/* A transaction: enqueue_job, then COMMIT, at which PostgreSQL sends what was notified. */
proctype Enqueuer() {
	bool wakes, holds;
	do
	:: atomic { jobs > 0 -> jobs--; /* must_wake: pg_try_advisory_xact_lock_shared */
		if
		:: TAKEN -> wakes = true
		:: else ->
#ifndef NO_SHARED
			shared++; holds = true
#endif
		fi };
		atomic { due++; /* COMMIT */
			if
			:: wakes -> notify()
			:: else
			fi;
			if
			:: holds -> shared--
			:: else
			fi;
			wakes = false; holds = false }
	:: jobs == 0 -> break
	od
}

inline scan() { /* Waker.broadcast, then a lease: what is there is found */
	due = 0
}

/* A waker and its waiter: Waker.listen, lock.serve, lock.scan, lock.wait. */
proctype Waker(byte i) {
#ifndef LISTEN_LATE
	listens[i] = true; /* LISTEN, before it is tried for the lock */
#endif
open:
	if
	:: atomic { !TAKEN && shared == 0 -> exclusive[i] = true; goto held } /* tryLock: "held" */
	:: atomic { TAKEN -> goto elsewhere }                                 /* "elsewhere" */
	:: atomic { shared > 0 -> scan() }                                    /* "open": each tick */
	fi;
	goto open;
held:
#ifndef NO_SCAN
	atomic { scan() }; /* what was committed before the lock was had */
#endif
#ifdef LISTEN_LATE
	listens[i] = true;
#endif
end_held: /* lock.wait */
	if
	:: atomic { told[i] -> told[i] = false; scan(); goto end_held }
	:: atomic { leaves > 0 -> leaves--; exclusive[i] = false; notify(); listens[i] = false; told[i] = false; goto left }
	:: atomic { kills > 0 -> kills--; exclusive[i] = false; listens[i] = false; told[i] = false; goto dead }
	fi;
left: /* lock.leave: it scans every interval, and listens again before it tries for the lock */
	atomic { scan() };
	listens[i] = true;
	goto open;
elsewhere:
	atomic { scan() };
end_elsewhere:
	if
	:: atomic { told[i] -> told[i] = false; scan(); goto end_elsewhere }
	:: atomic { !TAKEN -> goto open } /* otherTick, or the notification "free" */
	fi;
dead:
	skip
}

init {
	atomic { run Waker(0); run Waker(1); run Enqueuer(); run Enqueuer() }
}

/* What is committed is found. */
ltl found { [] (due > 0 -> <> (due == 0)) }
