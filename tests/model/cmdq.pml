/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Model of the command queue, passthrough/smmu/cmdq.c, for spin.
 *
 * The numbers (1) to (5) and the letters [A] to [D] are those of the source.
 *
 *      producer()          smmu_batch_submit(), then smmu_sync_wait()
 *      (1)                 cmdq_reserve()
 *      publish             cmdq_publish()                          (4)
 *      (5)                 smmu_sync_wait()
 *      update_cons         cmdq_update_cons()
 *      repair              smmu_cmdq_repair(), from a wait or the interrupt
 *      other_error()       what gerror_handle() of event.c does with the rest
 *      smmu()              the hardware: fetches, executes, stops, hangs
 *      store_buffer()      a CPU's stores on their way to memory
 *      words()             the SMMU's writes that complete a sync (MSI): each
 *                          comes as late as it likes, in any order, or never
 *
 * Memory is weaker than the hardware's: a CPU's stores to different places
 * reach memory in any order and as late as they like, unless a barrier waits
 * for them.  The cmpxchg() of `publishing` has no barrier in it, unlike Xen's,
 * so that [A] is on its own; FULL_CMPXCHG gives it those of Xen.
 *
 * Steps are put together only where another order of events gives the same:
 * a barrier stays passed until the CPU stores again; a slot's mark stays until
 * the slot was published; and cmpxchg() repeats the load that came before it.
 *
 * A loop that polls is a statement that waits for what it polls for, so that a
 * wait that never ends is a deadlock, which spin reports.
 *
 * test_models.py lists the bounds and the mutations: each takes away one thing
 * that the algorithm needs, and spin must find what goes wrong then.
 */

#ifndef PRODUCERS
#define PRODUCERS   3
#endif
#ifndef ROUNDS
#define ROUNDS      1           /* batches of each producer */
#endif
#ifndef N
#define N           2           /* slots: 2 or 4 */
#endif
#ifndef ERRORS
#define ERRORS      0           /* how many commands the SMMU refuses */
#endif

/*
 * Free running indexes: modulo 16 instead of 2^32, and about to overflow.  No
 * run has more than 16 - N commands, so that no index comes back to where it
 * was, as none does within 2^32 commands.
 */
#define M           16
#define START       (M - 1)
#define ADD(a, b)   (((a) + (b)) % M)
#define SUB(a, b)   (((a) + M - (b)) % M)
#define SLOT(i)     ((i) % N)
#define REG(i)      ((i) % (2 * N))
#define PHASE(i)    (1 + (((i) / N) & 1))
/* (int32_t)(a - b) >= 0 */
#define REACHED(a, b) (SUB(a, b) < M / 2)

/* A command: the index that it was written for, and what it does. */
#define CMD(i, kind) (1 + (i) * 4 + (kind))
#define CMD_INDEX(c) (((c) - 1) / 4)
#define CMD_KIND(c) (((c) - 1) % 4)
#define TLBI        0
#define SYNC        1
#define TLBI_ALL    2           /* a TLBI that was repaired */
#define NOTHING     3           /* a sync that took a refused one's place */

/* struct smmu_cmdq */
byte prod = START, cons = START, published = START;
bit publishing;
byte slot[N];
byte phase[N];
byte word[N];                   /* MSI: which ticket was written last */
bit error_lock;
bit dead;

/* The registers. */
byte PROD, CONS;
byte GERROR, GERRORN;           /* bit 0: the command queue's, bit 1: other */
byte ERR;                       /* CONS.ERR */
#define ILL         1
#define ABT         2
#define CMDQ_ERROR  ((GERROR ^ GERRORN) & 1)
#define OTHER_ERROR ((GERROR ^ GERRORN) & 2)

/* Not in the source: what has really happened. */
byte consumed = START;          /* free running */
int executed;                   /* a bit for each index */
int sent;                       /* MSI: tickets not written yet */
byte refused;
bit hung;
byte finished;
byte turn;

/* Stores that have not reached memory, by CPU.  0: there is none. */
#define CPUS        (PRODUCERS + 2)
byte sb_slot[CPUS * N];
byte sb_phase[CPUS * N];
byte sb_prod[CPUS];             /* 1 + value for the register */
bit sb_free[CPUS];              /* publishing = 0 */

#if N == 2
#define ANY(a)      (a[me * N] || a[me * N + 1])
#else
#define ANY(a)      (a[me * N] || a[me * N + 1] || a[me * N + 2] || \
                     a[me * N + 3])
#endif

/* smp_mb(), smp_wmb(), and those inside of cmpxchg() and writel(). */
#define DRAINED     (!(ANY(sb_slot) || ANY(sb_phase) || sb_prod[me] || \
                       sb_free[me]))
inline barrier() { DRAINED }

/* A load sees the CPU's own stores first. */
#define SEE_PHASE(s) (sb_phase[me * N + (s)] -> sb_phase[me * N + (s)] : \
                                                phase[s])

inline store_slot(s) {
    d_step {
        sb_slot[me * N + s] ->
        /* No slot is overwritten before it was consumed. */
        assert(SUB(CMD_INDEX(sb_slot[me * N + s]), consumed) < N);
        slot[s] = sb_slot[me * N + s];
        sb_slot[me * N + s] = 0
    }
}

inline store_phase(s) {
    d_step {
        sb_phase[me * N + s] ->
        phase[s] = sb_phase[me * N + s];
        sb_phase[me * N + s] = 0
    }
}

proctype store_buffer(byte me)
{
    byte i;

end:
    do
    :: store_slot(0)
    :: store_slot(1)
    :: store_phase(0)
    :: store_phase(1)
#if N == 4
    :: store_slot(2)
    :: store_slot(3)
    :: store_phase(2)
    :: store_phase(3)
#endif
    :: d_step {
           sb_prod[me] ->
           /* PROD only moves on, and never past a slot not written. */
           assert((sb_prod[me] - 1 + 2 * N - PROD) % (2 * N) <= N);
           i = consumed;
           do
           :: REG(i) == sb_prod[me] - 1 -> break
           :: else ->
              assert(SUB(i, consumed) < N);
              assert(slot[SLOT(i)] && CMD_INDEX(slot[SLOT(i)]) == i);
              i = ADD(i, 1)
           od;
           PROD = sb_prod[me] - 1;
           sb_prod[me] = 0;
           i = 0
       }
    :: d_step { sb_free[me] -> publishing = 0; sb_free[me] = 0 }
    od
}

#define RUNS        (!CMDQ_ERROR && !hung && PROD != REG(consumed))
#define CONS_IS_LATE (CONS != REG(consumed))
#define NEXT        slot[SLOT(consumed)]

proctype smmu()
{
end:
    do
    :: d_step {
           RUNS ->
           assert(CMD_INDEX(NEXT) == consumed);
           if
           :: CMD_KIND(NEXT) == NOTHING
           :: else ->
              executed = executed | (1 << consumed);
#ifdef MSI
              if
              :: CMD_KIND(NEXT) == SYNC -> sent = sent | (1 << consumed)
              :: else
              fi
#endif
           fi;
           consumed = ADD(consumed, 1);
#ifndef MSI
           CONS = REG(consumed)
#endif
       }
#ifdef MSI
    /* Any time after what it says, and after the word perhaps. */
    :: d_step { !hung && CONS_IS_LATE -> CONS = REG(consumed) }
#endif
#if ERRORS
    :: d_step {
           RUNS && !CONS_IS_LATE && refused < ERRORS &&
           CMD_KIND(NEXT) != NOTHING ->
           ERR = ILL; refused++; GERROR = GERROR ^ 1
       }
    :: d_step {
           RUNS && !CONS_IS_LATE && refused < ERRORS ->
           ERR = ABT; refused++; GERROR = GERROR ^ 1
       }
#endif
#ifdef OTHER
    :: d_step { !(GERROR & 2) -> GERROR = GERROR | 2 }
#endif
#ifdef HANG
    :: d_step { !hung -> hung = 1 }
#endif
    od
}

#ifdef MSI
proctype words()
{
    byte t;

end:
    do
    :: atomic {
           sent ->
           do
           :: t < M - 1 && sent >> (t + 1) -> t++
           :: sent & (1 << t) ->
              if
              :: word[SLOT(t)] = t
              :: true           /* lost */
              fi;
              sent = sent & ~(1 << t);
              t = 0;
              break
           od
       }
    od
}
#endif

/*
 * cmdq_update_cons().  The register is at most N further than a cons that is
 * still the same after the register was read [D].
 */
inline update_cons() {
    do
    ::
#ifdef NO_RMB_D
       atomic { reg = CONS };
       atomic { old = cons };
#else
       /* A cons that has not changed was the same when CONS was read. */
       atomic { old = cons; reg = CONS };
#endif
       atomic {
           barrier();
           if
           :: cons == old ->    /* the second look, and the cmpxchg() */
              assert((reg + 2 * N - REG(old)) % (2 * N) <= N);
              cons = ADD(old, (reg + 2 * N - REG(old)) % (2 * N));
              /* Nothing is believed that was not consumed. */
              assert(REACHED(consumed, cons));
              old = 0; reg = 0;
              break
           :: else -> old = 0; reg = 0
           fi
       }
    od
}

/* smmu_cmdq_repair() */
inline repair() {
    atomic { !error_lock -> error_lock = 1 };
    if
    :: atomic {
           CMDQ_ERROR ->
           old = SLOT(CONS);
           reg = slot[old];
           if
           :: ERR == ABT
           :: ERR == ILL && CMD_KIND(reg) == TLBI ->
              sb_slot[me * N + old] = CMD(CMD_INDEX(reg), TLBI_ALL)
           :: ERR == ILL && CMD_KIND(reg) != TLBI ->
#ifndef NOT_DEAD
              dead = 1;
#endif
              sb_slot[me * N + old] = CMD(CMD_INDEX(reg), NOTHING)
           fi;
           reg = 0; old = 0
       };
       atomic {
#ifndef ACK_EARLY
           barrier();           /* of writel() [C] */
#endif
           GERRORN = GERRORN ^ 1
       }
    :: atomic { else }
    fi;
    atomic { barrier(); error_lock = 0 }
}

#ifdef NO_PARITY
#define MARK(i)     1
#else
#define MARK(i)     PHASE(i)
#endif

/* (4) */
inline publish() {
    do
    :: atomic {
#ifndef NO_A
           barrier();           /* [A], or [B] */
#endif
           /* What is done to a place comes after one's own store to it. */
           !sb_free[me];
#ifdef FULL_CMPXCHG
           barrier();
#endif
           if
           :: publishing -> break
           :: else -> publishing = 1
           fi
       };
       atomic {
           i = published;
           do
           :: SEE_PHASE(SLOT(i)) == MARK(i) ->
              assert(SUB(i, published) < N);    /* it ends */
              i = ADD(i, 1)
           :: else -> break
           od;
           if
           :: i != published ->
              published = i;
              barrier();        /* smp_rmb() and writel() [C] */
              sb_prod[me] = 1 + REG(i)
           :: else
           fi
       };
       atomic {
#ifndef NO_RELEASE
           barrier();           /* publication before the release */
#endif
           sb_free[me] = 1
       };
       atomic {
#ifdef NO_RECHECK
           break
#else
#ifndef NO_B
           barrier();           /* [B] */
#endif
           if
           :: SEE_PHASE(SLOT(i)) == MARK(i)
           :: else -> break
           fi
#endif
       }
    od;
    i = 0
}

#ifdef OFF_BY_ONE
#define ROOM        (N + 1)
#else
#define ROOM        N
#endif

#ifdef HANG
#define MAY_GIVE_UP 1
#else
#define MAY_GIVE_UP 0
#endif

/* cmdq_done(): has the CMD_SYNC at `last` been consumed? */
#ifdef NO_WRAP
#define BY_CONS     (SLOT(CONS) == SLOT(last + 1))
#else
#define BY_CONS     REACHED(cons, ADD(last, 1))
#endif
#ifdef WORD_FLAG
/* Not which ticket, but that something was written. */
#define BEFORE      M
#define WRITTEN     (word[SLOT(last)] != M)
#else
#define BEFORE      ADD(last, M - 1)
#define WRITTEN     REACHED(word[SLOT(last)], last)
#endif
#ifdef MSI
#define DONE        (BY_CONS || WRITTEN)
#else
#define DONE        BY_CONS
#endif

proctype producer(byte me)
{
    byte round, nr, first, last, i, old, reg;
    bit sync;

    do
    :: atomic { round == ROUNDS -> break }
    :: atomic {
           /* Producers are alike: the first to begin may be called 0. */
           round < ROUNDS && (round || turn == me) ->
           round++;
           if
           :: nr = 1; sync = 1
#ifndef ONLY_SYNC
           :: nr = 2; sync = 1
#endif
#ifndef ALL_WAIT
           :: nr = 1; sync = 0  /* what smmu_batch_add() submits */
#endif
           fi
       };

       /* (1) */
       do
       :: atomic {
              DRAINED && SUB(ADD(prod, nr), cons) <= ROOM ->
              first = prod;
              prod = ADD(prod, nr);
              last = ADD(first, nr - 1);
              turn = turn + (round == 1);
              break
          }
       :: SUB(ADD(prod, nr), cons) > ROOM && CONS != REG(cons) -> update_cons()
       :: SUB(ADD(prod, nr), cons) > ROOM && CMDQ_ERROR -> repair()
       :: atomic {
              MAY_GIVE_UP ->
              dead = 1;
              turn = turn + (round == 1);
              goto gave_up
          }
       od;

#ifdef IRQS_ON
       /* An interrupt here, whose handler is producer 1. */
       if
       :: me == 0 -> finished
       :: else
       fi;
#endif
       /* (2), (3) */
       atomic {
#ifdef MARK_FIRST
           sb_phase[me * N + SLOT(last)] = MARK(last);
           sb_phase[me * N + SLOT(first)] = MARK(first);
           barrier();
#endif
#ifdef MSI
           /* In memory at once: the SMMU's writes come before or after. */
           if
           :: sync -> word[SLOT(last)] = BEFORE
           :: else
           fi;
#endif
           sb_slot[me * N + SLOT(first)] =
               CMD(first, (nr == 1 && sync -> SYNC : TLBI));
           if
           :: nr == 2 -> sb_slot[me * N + SLOT(last)] = CMD(last, SYNC)
           :: else
           fi;
#ifndef MARK_FIRST
#ifndef NO_WMB
           barrier();
#endif
           sb_phase[me * N + SLOT(last)] = MARK(last);
           sb_phase[me * N + SLOT(first)] = MARK(first)
#endif
       };
       publish();

       if
       :: !sync
       :: else ->
          /* (5) */
          do
          :: atomic {
                 DONE ->
                 barrier();
#ifdef WORD_MOVES_CONS
                 if
                 :: !BY_CONS -> cons = ADD(last, 1)
                 :: else
                 fi;
#endif
                 if
                 :: dead
                 :: else ->
                    /* Success: one's own commands have been executed. */
                    assert(REACHED(consumed, ADD(last, 1)));
                    assert(executed & (1 << first));
                    assert(executed & (1 << last))
                 fi;
                 break
             }
          :: !DONE && CONS != REG(cons) -> update_cons()
          :: !DONE && CMDQ_ERROR -> repair()
          :: atomic { !DONE && MAY_GIVE_UP -> dead = 1; break }
          od
       fi;
gave_up:
       atomic { first = 0; last = 0; nr = 0; sync = 0 }
    od;

    finished++
}

/* The error interrupt, on a CPU of its own. */
proctype interrupt(byte me)
{
    byte old, reg;

end:
    do
    :: CMDQ_ERROR -> repair()
    od
}

/* gerror_handle(): GERRORN is one register for all errors. */
proctype other_error(byte me)
{
    byte reg;

end:
    do
    :: OTHER_ERROR ->
#ifndef ACK_UNLOCKED
       atomic { !error_lock -> error_lock = 1 };
#endif
       reg = GERRORN ^ 2;
       GERRORN = reg;
#ifndef ACK_UNLOCKED
       error_lock = 0
#endif
    od
}

/*
 * Nobody has anything left to do: all that was marked was published and, if
 * the SMMU works, consumed.  Else this is where spin finds a deadlock.
 */
proctype at_the_end()
{
    finished == PRODUCERS;
    published == prod && PROD == REG(prod) && (hung || consumed == prod);
}

init {
    atomic {
        byte n;

        /* As if the indexes before START had gone through. */
        PROD = REG(START);
        CONS = REG(START);
        for ( n : 1 .. N ) {
            phase[SLOT(START - n)] = MARK(START - n);
            word[SLOT(START - n)] = START - n
        }
        for ( n : 0 .. PRODUCERS - 1 ) {
            run store_buffer(n);
            run producer(n)
        }
#ifdef INTERRUPT
        run store_buffer(PRODUCERS);
        run interrupt(PRODUCERS);
#endif
#ifdef OTHER
        run other_error(PRODUCERS + 1);
#endif
#ifdef MSI
        run words();
#endif
        run smmu();
        run at_the_end()
    }
}
