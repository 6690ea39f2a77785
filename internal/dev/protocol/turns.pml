/*
 * The workflow's turns: lanes, pause and resume, failed turns, continue-as-new (package workflows).
 *
 * Two lanes work turn after turn; one at most waits for work. A person sends pause and resume; the
 * last one counts. A turn whose activity fails leaves leases behind, which a later turn is told of
 * (RunState.LeftBehind). A run that drains continues as new with its state. Coroutines of a workflow
 * do not run at once: what stands between two waits is one atomic step.
 */
#define LANES 2
#define SIGNALS 3

mtype = { pause, resume };

byte pauses, resumes;         /* received, and not taken yet: one channel a signal */
mtype last = resume;          /* which came last: signalOrder */
mtype wanted = resume;        /* ghost: what the person said last */
bool paused, draining;        /* run.state.Paused, run.draining */
byte waiting;                 /* the lane that waits, from 1; 0: none */
bool running[LANES], told[LANES];
byte waiters;                 /* ghost: how many lanes wait */
bool left_behind;             /* run.state.LeftBehind */
bool held;                    /* ghost: a turn that has ended holds leases */
byte fails = 1, runs = 1;     /* how many turns fail, and how often it continues as new */

#ifdef NO_PAUSE
#define STOPPED false
#else
#define STOPPED paused
#endif

/* run.onSignal, run.setPaused with pauseAsked */
inline take(signal) {
	if
#ifdef NO_ORDER
	:: paused = (signal == pause)
#else
	:: paused = (last == pause)
#endif
	fi
}

/* run.drainSignals, then NewContinueAsNewError with Carried. */
inline continue_as_new() {
#ifndef NO_DRAIN
	if
	:: resumes > 0 -> take(resume)
	:: else
	fi;
	if
	:: pauses > 0 -> take(pause)
	:: else
	fi;
#endif
	pauses = 0; resumes = 0; /* what the run has received goes with it */
#ifdef NO_CARRY
	left_behind = false;
#endif
	draining = false
}

active proctype Person() {
	byte n;
	do
	:: atomic { n < SIGNALS && wanted == resume -> n++; pauses++; last = pause; wanted = pause }
	:: atomic { n < SIGNALS && wanted == pause -> n++; resumes++; last = resume; wanted = resume }
	:: n == SIGNALS || wanted == resume -> break
	od
}

/* The goroutines of handleMessages: which channel is read first is not known. */
active proctype Messages() {
end:	do
	:: atomic { pauses > 0 -> pauses--; take(pause) }
	:: atomic { resumes > 0 -> resumes--; take(resume) }
	od
}

active proctype Run() {
end:	do
	:: atomic { runs > 0 && !draining -> runs--; draining = true } /* GetContinueAsNewSuggested */
	:: atomic { draining && !running[0] && !running[1] -> continue_as_new() } /* run.run */
	od
}

/* lane.run, lane.turn */
active [LANES] proctype Lane() {
	byte i = _pid - 3;
	bool waits;
end:	do
	:: atomic { !draining && !STOPPED -> /* mayBegin */
		assert(!paused); /* a pause takes effect: no turn begins */
		running[i] = true; told[i] = left_behind; waits = false;
		if
#ifdef NO_WAITING
		:: waits = true; waiting = i + 1; waiters++
#else
		:: waiting == 0 -> waits = true; waiting = i + 1; waiters++
#endif
		:: waiting != 0 && waiting != i + 1
		fi;
		assert(waiters <= 1) } /* one lane waits for work */
		/* ProcessBatch */
		if
		:: atomic { true -> /* it ends well, or was interrupted, or has waited in vain */
			if
			:: told[i] -> left_behind = false; held = false /* noteReclaimed */
			:: else
			fi }
		:: atomic { fails > 0 -> fails--; left_behind = true; held = true } /* leaveBehind */
		fi;
		atomic {
			if
			:: waits -> waiting = 0; waiters-- /* stopWaiting */
			:: else
			fi;
			running[i] = false; told[i] = false; waits = false }
	od
}

/* The person's last word stands, and what a turn left is reclaimed unless the queue is paused. */
ltl obeyed { <> [] (paused == (wanted == pause)) }
ltl reclaimed { [] (held -> <> (!held || paused)) }
