/*
 * One job and its lease, as the statements of internal/store see its row.
 *
 * Two activities of one turn work it, each with two calls: Temporal begins the second when it hears
 * nothing of the first, which may live. Both have the same turn, and each has a fence of its own.
 * A statement is one atomic step, because it holds the row's lock. What may go wrong is bounded by
 * FAULTS: an activity is killed, or sleeps until it is woken, or the answer of a COMMIT is lost
 * because the connection is cut or the server restarts. Ghosts are what no program knows.
 *
 * Time is the age of the lease: 0 just renewed, 1 due for renewal, 2 expired. An activity that lives
 * and is awake renews before its lease expires; nothing else is assumed of time.
 */
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef SNOOZES
#define SNOOZES 1
#endif
#define REQUESTS 1

mtype = { pending, leased, completed };

mtype state = pending; /* the row of daybook.jobs */
byte fence, attempt, generation, leased_generation, begun_at, age;
byte fences, clock;    /* daybook.fence_seq; attempt_started_at is another one for each lease */
byte has[2];           /* an activity's fence */
bool alive[2], awake[2], gone[2], arrived[2], orphans[2];
bool slept[2];         /* ghost: since it last renewed */
byte calls[2];         /* how many of its calls have the job: worker.begun, finisher.known */
byte faults = FAULTS, snooze = SNOOZES;
byte asked;            /* ghost: requests so far */

#define ON(i) (alive[i] && awake[i])
#define HOLDS(i) (state == leased && fence == has[i])
#define WELL(i) (HOLDS(i) && ON(i) && !slept[i])
#ifdef NO_RENEW
#define RENEWED false
#else
#define RENEWED (WELL(0) || WELL(1))
#endif

/* What a completion compares: completeStmt, keepStepStmt, LockChunk with sameAttempt. */
#if defined(NO_FENCE)
#define OWN true
#elif defined(NO_GENERATION)
#define OWN (fence == my && attempt == a)
#elif defined(NO_BEGIN)
#define OWN (fence == my && attempt == a && leased_generation == g)
#else
#define OWN (fence == my && attempt == a && leased_generation == g && begun_at == b)
#endif
#define HELD (state == leased && OWN)

/* With TRACE each change of the row has to be the next one of a trace of the real engine
 * (traces_test.go), and the search finds out whether the model can come to its end. */
#ifdef TRACE
#include "trace.pml"
byte at, last; /* the rows so far; the fence of the last lease */
bool strayed;
#define NEWER 1
#define SAME 2
#define OLDER 3
#define ROW(s, a, g, f) (state == s && attempt == a && generation == g && is == f)
inline changed(is) {
	if
	:: !strayed && (TRACE_ROWS) -> at++; assert(at < TRACE_LENGTH)
	:: else -> strayed = true; false
	fi
}
#define CHANGED(is) changed(is)
#define FENCED (fence > last -> NEWER : (fence == last -> SAME : OLDER))
#else
#define CHANGED(is)
#endif

inline took(f) { /* what each lease writes */
	fence = f; leased_generation = generation; clock++; begun_at = clock; age = 0;
#ifdef TRACE
	CHANGED(FENCED); last = fence
#endif
}

inline again() { /* what each end of a lease does: a request meanwhile counts anew */
	state = pending; fence = 0;
	if
	:: generation != leased_generation -> attempt = 0
	:: else
	fi;
	leased_generation = 0; begun_at = 0; age = 0;
	CHANGED(0)
}

inline forget() {
	my = 0; a = 0; g = 0; b = 0; saw = 0; committed = false; snoozes = false; goto end
}

inline begin() {
	my = has[i]; a = attempt; g = leased_generation; b = begun_at; saw = asked; calls[i]++
}

#define LIVES (ON(i) && my == has[i])
#define LOST (!alive[i] || my != has[i])

/* A call: engine.single, from the lease to its completion. */
proctype Call(byte i) {
	byte my, a, g, b;
	byte saw;       /* ghost: the requests that came before the handler began */
	bool committed; /* ghost: the attempt's effect is committed */
	bool snoozes;
end:	do
	:: atomic { ON(i) && state == pending -> /* LeaseFor */
		state = leased; attempt++; took(has[i]); slept[i] = false;
		if
		:: begin(); break
		:: faults > 0 -> faults--; orphans[i] = true /* unknown: holder.loseTrack */
		fi }
	:: atomic { ON(i) && arrived[i] -> arrived[i] = false; begin(); break } /* leases.takeArrived */
	od;
	do
	:: atomic { LIVES -> break } /* the handler ends well */
	:: atomic { LIVES && snooze > 0 -> snooze--; snoozes = true; break }
	:: atomic { LOST -> forget() } /* killed: another process has the turn's next activity */
	od;
	do /* completion.run, completing.complete: sent again until the answer is known */
	:: atomic { LIVES && HELD ->
		if
		:: snoozes -> attempt--; again() /* rescheduled, uncounted */
		:: else ->
			assert(!committed); /* an effect is there once */
			committed = true;   /* in the transaction of the effect */
			if
			:: generation == leased_generation ->
				assert(saw == asked); /* no request is lost */
				state = completed; fence = 0; begun_at = 0; age = 0;
				CHANGED(0)
			:: else -> again()
			fi
		fi;
		if
		:: calls[i]--; forget()
		:: faults > 0 -> faults--
		fi }
	:: atomic { LIVES && !HELD -> calls[i]--; forget() } /* ErrLeaseLost */
	:: atomic { LOST -> forget() }
	od;
}

/* An activity: it begins (leases.reclaimFirst), and gives back what it does not know (holder.reconcile). */
proctype Activity(byte i) {
end:	do
	:: atomic { !alive[i] && !gone[i] -> /* NextFence, then ReclaimTurns */
		fences++; has[i] = fences; alive[i] = true; awake[i] = true; slept[i] = false;
		calls[i] = 0; orphans[i] = false; arrived[i] = false;
		if
		:: state == leased && fence < has[i] && generation == leased_generation ->
			attempt++; took(has[i]); arrived[i] = true
		:: state == leased && fence < has[i] && generation != leased_generation -> again()
		:: else
		fi }
#ifndef NO_RECONCILE
	:: atomic { ON(i) && orphans[i] && HOLDS(i) && calls[i] == 0 && !arrived[i] -> /* GiveBack */
		attempt--; again();
		if
		:: orphans[i] = false
		:: faults > 0 -> faults-- /* unknown: the next look gives back again */
		fi }
#endif
	:: atomic { state != completed && ON(i) && faults > 0 -> faults--; alive[i] = false; calls[i] = 0;
		if
		:: true
		:: !gone[1 - i] -> gone[i] = true
		fi }
	:: atomic { state != completed && ON(i) && faults > 0 -> faults--; awake[i] = false; slept[i] = true }
	:: atomic { alive[i] && !awake[i] -> awake[i] = true }
	od
}

/* leases.renew, beside all that the activity does. */
proctype Renewal(byte i) {
end:	do
#ifdef NO_RENEW
	:: false
#else
	:: atomic { ON(i) && HOLDS(i) && age > 0 -> age = 0; slept[i] = false }
#endif
	od
}

/* The database's clock. */
proctype Clock() {
end:	do
	:: atomic { state == leased && age == 0 -> age = 1 }
	:: atomic { state == leased && age == 1 && !RENEWED -> age = 2 }
	od
}

/* Reclaimer.Check, in whichever process lives. */
proctype Reclaimer() {
end:	do
#ifdef NO_RECLAIM
	:: false
#else
	:: atomic { state == leased && age == 2 ->
		assert(!WELL(0) && !WELL(1)); /* a worker that renews is not charged */
		again() }
#endif
	od
}

/* Requests for a unique job: daybook.join_unique_job. One that finds the job pending leaves no
 * trace, because the next attempt reads what its caller wrote. */
proctype Requester() {
	byte n;
end:	do
	:: atomic { n < REQUESTS && state == leased ->
		n++; asked++;
#ifndef NO_RAISE
		generation++;
		CHANGED(0)
#endif
		}
	:: atomic { n < REQUESTS && state == pending -> n++; asked++ }
	od
}

init {
	atomic {
		fences = 2; has[0] = 1; has[1] = 2; alive[0] = true; alive[1] = true; awake[0] = true; awake[1] = true;
		run Activity(0); run Activity(1); run Renewal(0); run Renewal(1);
		run Call(0); run Call(0); run Call(1); run Clock(); run Reclaimer(); run Requester()
	}
}

ltl ends { <> (state == completed) }
