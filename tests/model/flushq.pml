/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Model of the life of a flush queue entry, for spin.  What stands for what:
 *
 *      push            pvi_fq_open(), s2pt_unmap(), pvi_fq_close();
 *                      pvi_fq_p2m(); fq_push()
 *      flush           pvi_fq_flush(), flush_submit(), flush_finished()
 *      release         fq_release(), s2pt_release(), p2m_release()
 *      release_later   pvi_fq_release_later()
 *      timer()         fq_timer()
 *      slices()        slice() with viommu_slice() and step_unmap()
 *      p2m()           pviommu_p2m_change() and _unlock() of p2m.c
 *      early           pvi_fq_start() and pvi_fq_overlap(), with EARLY
 *      switcher()      pvi_set_strict(), on and off again
 *      teardown()      pvi_endpoint_attach(ep, NULL), pvi_att_put(), then
 *                      pviommu_relinquish() and pvi_domain_free()
 *      smmu()          one that executes a flush's commands when it likes,
 *                      or, with FAIL, never
 *
 * No lock is held while a flush waits but pd->lock, if the caller had it; so
 * others go on queueing, and flushes overlap.  What makes that right:
 *
 *   - a flush covers all that is not synced when it begins, also what another
 *     one is about to cover, so whichever ends first may say so;
 *   - nothing is put into an entry that a flush has begun with (`started`);
 *   - `synced` only moves on, to where the tail was when the flush began;
 *   - what was issued early and is waited for by nobody may be forgotten, and
 *     whoever needs just that waits for it, but for nothing that came later;
 *   - strict going off sets the timer while something is queued: what was
 *     queued in strict mode has none, and the p2m may see the flag change
 *     between its entry and the question whether to wait.
 *
 * test_models.py lists the bounds and the mutations: each of these rules, and
 * others, is broken once, and spin must find what goes wrong then.
 */

#ifndef UNMAPS
#define UNMAPS      1           /* pages that the guest takes away */
#endif
#ifndef REMOVALS
#define REMOVALS    1           /* pages that leave the p2m */
#endif
#ifndef RING
#define RING        4           /* PVI_FQ_RANGES */
#endif
#ifndef SMMUS
#define SMMUS       1
#endif

/* Free running indexes: modulo 8 instead of 2^32. */
#define M           8
#define ADD(a, b)   (((a) + (b)) % M)
#define SUB(a, b)   (((a) + M - (b)) % M)
#define SLOT(i)     ((i) % RING)

/* Sets of pages are bit masks; the guest's pages come first. */
#define PAGES       (UNMAPS + REMOVALS)
#define ALL         ((1 << PAGES) - 1)

/* struct pvi_domain, struct pvi_flushq */
bit lock, tlock;
bit strict, broken;
byte head, synced, started, tail;
byte entry[RING];               /* the pages in it */
byte pages;                     /* fq->pages */
#define COUNT       SUB(tail, synced)

/* The timer, and which of the entries it was set for (M: none). */
byte timer_state;
#define IDLE        0
#define ARMED       1
#define KILLED      2
bit timer_running;
byte armed_for = M;

/* Not in the source: what has really happened. */
byte mapped = ALL;              /* entries of the table that are valid */
byte stale[SMMUS];              /* pages that a TLB may know */
byte released;
byte answered;                  /* the guest, or Xen, goes on without these */
bit attached = 1;
bit context_freed, domain_freed;
byte refs, running;

/* Commands on their way: flusher times SMMU. */
#define SLICES      0
#define P2M         1
#define TIMER       2
#define SWITCHER    3
#define TEARDOWN    4
#define EARLIER     5           /* nobody: fq->early */
#define FLUSHERS    6
byte commands[FLUSHERS * SMMUS];
bit timed_out[FLUSHERS];

/* fq->early and early_on: covers what is before early_to. */
bit early_on;
byte early_to;

#if SMMUS == 1
#define STALE       stale[0]
#define ON_WAY(f)   commands[f]
#else
#define STALE       (stale[0] | stale[1])
#ifdef ONE_SMMU
#define ON_WAY(f)   commands[f * 2]
#else
#define ON_WAY(f)   (commands[f * 2] | commands[f * 2 + 1])
#endif
#endif

#define TAKE(l)     !l -> l = 1; assert(!domain_freed)

/* set_timer(): nothing once it was killed. */
inline set_timer(what) {
    if
    :: timer_state != KILLED -> timer_state = ARMED; armed_for = what
    :: else
    fi
}

inline check() {
    assert(SUB(synced, head) <= RING && SUB(tail, head) <= RING &&
           SUB(tail, synced) <= SUB(tail, head) &&
           SUB(tail, started) <= SUB(tail, synced))
}

#ifdef FAIL
#define MAY_FAIL    1
#else
#define MAY_FAIL    0
#endif

inline execute(f) {
    atomic {
        commands[f * SMMUS + k] ->
        if
        :: stale[k] = stale[k] & ~(commands[f * SMMUS + k] & ~mapped)
        :: MAY_FAIL -> timed_out[f] = 1
        fi;
        commands[f * SMMUS + k] = 0
    }
}

proctype smmu(byte k)
{
end:
    do
    :: execute(SLICES)
    :: execute(P2M)
    :: execute(TIMER)
#ifdef SWITCH
    :: execute(SWITCHER)
#endif
    :: execute(TEARDOWN)
#ifdef EARLY
    :: execute(EARLIER)
#endif
    od
}

/* sum = how many pages the entries from `from` to `to` hold. */
inline count_pages(from, to) {
    i = from;
    sum = 0;
    do
    :: i != to ->
       set = entry[SLOT(i)];
       do
       :: set -> sum = sum + (set & 1); set = set >> 1
       :: else -> break
       od;
       i = ADD(i, 1)
    :: else -> break
    od;
    i = 0
}

#ifdef FROM_STARTED
#define FLUSH_FROM  started
#else
#define FLUSH_FROM  synced
#endif

/* Has all of it been issued early? */
#ifdef EARLY_FOR_ALL
#define EARLY_COVERS early_on
#else
#define EARLY_COVERS (early_on && early_to == tail)
#endif

/* flush_finished(), with tlock held. */
inline finished() {
    if
#ifdef MAY_GO_BACK
    :: true ->
#else
    :: SUB(tail, synced) > SUB(tail, to) ->
#endif
#ifdef PAGES_ZERO
       sum = pages;
#else
       count_pages(synced, to);
#endif
       pages = pages - sum;
       synced = to;
#ifndef NO_PAGES
       check();
       count_pages(synced, tail);
       assert(pages == sum);
#endif
#ifdef STOP_TIMER
       if
       :: timer_state == ARMED -> timer_state = IDLE
       :: else
       fi;
#endif
       sum = 0
    :: else
    fi
}

/* Without tlock.  rc 0: what was queued before is covered by a sync. */
inline flush() {
    rc = 0;
    if
    :: atomic { broken -> rc = 1 }
    :: atomic {
           !broken && !tlock ->
           assert(!domain_freed);
           to = tail;
           fl = me;
           if
           :: to == FLUSH_FROM
           :: to != FLUSH_FROM && EARLY_COVERS -> fl = EARLIER; rc = 1
           :: else ->
              i = FLUSH_FROM;
              started = to;
              do
              :: i != to -> set = set | entry[SLOT(i)]; i = ADD(i, 1)
              :: else -> break
              od;
              i = 0;
              timed_out[me] = 0;
              if
              :: attached ->
                 commands[me * SMMUS] = set;
#if SMMUS == 2
                 commands[me * SMMUS + 1] = set
#endif
              :: else
              fi;
              set = 0;
              rc = 1
           fi
       };
       if
       :: rc ->
          atomic {
              !ON_WAY(fl) && (timed_out[fl] || !tlock);
              if
#ifndef FAIL_ADVANCES
              :: timed_out[fl] -> broken = 1
#endif
              :: else ->
                 assert(!domain_freed);
                 rc = 0;
#ifdef UP_TO_TAIL
                 to = tail;
#endif
                 finished()
              fi
          }
       :: else
       fi
    fi;
    to = 0
}

/* With tlock held; `more`: its budget was used up. */
#ifdef RELEASE_QUEUED
#define RELEASE_TO  tail
#else
#define RELEASE_TO  synced
#endif
inline release_some() {
    more = 0;
    do
    :: head == RELEASE_TO -> break
    :: head != RELEASE_TO -> more = 1; break
    :: head != RELEASE_TO ->
       i = 0;
       do
       :: entry[SLOT(head)] & (1 << i) -> break
       :: else -> i++
       od;
       /* Nothing is released that hardware may still reach. */
       assert(!(STALE & (1 << i)));
       assert(!context_freed);
       assert(!(released & (1 << i)));
       released = released | (1 << i);
       entry[SLOT(head)] = entry[SLOT(head)] & ~(1 << i);
       if
       :: !entry[SLOT(head)] -> head = ADD(head, 1)
       :: else
       fi
    od;
    i = 0
}

inline release() {
    atomic { !tlock -> assert(!domain_freed); release_some() }
}

inline release_later() {
    atomic {
        !tlock ->
        assert(!domain_freed);
        release_some();
        if
        :: more -> set_timer(M)
        :: else
        fi;
        more = 0
    }
}

#ifdef MERGE_STARTED
#define MERGE_FROM  synced
#else
#define MERGE_FROM  started
#endif
#define LAST        entry[SLOT(tail + M - 1)]

/* Page `p`, with tlock held; `no_slot`: they are all in use. */
inline push() {
    no_slot = 0;
    if
    :: tail != MERGE_FROM && COUNT && (LAST & (1 << p) >> 1) &&
       p != UNMAPS ->
       LAST = LAST | (1 << p)
    :: else ->
       if
       :: SUB(tail, head) == RING -> no_slot = 1
       :: else ->
          assert(!entry[SLOT(tail)]);
          entry[SLOT(tail)] = 1 << p;
          if
          :: !COUNT && !strict -> set_timer(tail)
          :: else
          fi;
          tail = ADD(tail, 1);
          check()
       fi
    fi;
    if
    :: no_slot
    :: else -> mapped = mapped & ~(1 << p); pages++
    fi
}

/* The used ring's index is written.  Strict is final: nothing is stale. */
#ifdef EARLY
inline early_start() {
    atomic {
        !tlock;
        if
        :: early_on && !ON_WAY(EARLIER) && !timed_out[EARLIER] ->
           to = early_to;
           finished();
           early_on = 0
        :: else
        fi;
        if
        :: !strict && !early_on && COUNT ->
           early_to = tail;
           started = tail;
           i = synced;
           do
           :: i != tail -> set = set | entry[SLOT(i)]; i = ADD(i, 1)
           :: else -> break
           od;
           if
           :: attached ->
              commands[EARLIER * SMMUS] = set;
#if SMMUS == 2
              commands[EARLIER * SMMUS + 1] = set
#endif
           :: else
           fi;
           timed_out[EARLIER] = 0;
           early_on = 1
        :: else
        fi;
        i = 0;
        set = 0;
        to = 0
    }
}

/* Where one is under way: wait for that. */
inline early_overlap() {
    atomic { to = early_to; early_on = 0 };
    atomic {
#ifdef EARLY_UNWAITED
        (timed_out[EARLIER] || !tlock);
#else
        !ON_WAY(EARLIER) && (timed_out[EARLIER] || !tlock);
#endif
        if
        :: timed_out[EARLIER] -> broken = 1
        :: else -> finished()
        fi;
        to = 0
    }
}
#endif

inline answer() {
    answered = answered | mine;
    mine = 0;
    assert(!strict || !(answered & STALE) || broken)
}

proctype slices()
{
    byte me = SLICES, fl, to, i, set, sum, p, mine;
    bit rc, more, no_slot;

    do
    :: atomic { TAKE(lock); !tlock; release_some() };
       do
       :: atomic {
              p < UNMAPS && !tlock ->
              push();
              if
              :: !no_slot -> mine = mine | (1 << p); p++
              :: else
              fi
          };
          /* No slot, pvi_fq_due(), or a need: overlap, memory. */
          if
          :: atomic { !no_slot && COUNT != RING }
#ifdef EARLY
          :: COUNT && early_on -> early_overlap()
#endif
          :: COUNT ->
             flush();
             if
             :: atomic { rc -> goto failed }
             :: atomic { else }
             fi
          :: atomic { no_slot && !COUNT }
          fi;
          if
          :: no_slot -> release()
          :: atomic { else }
          fi
       :: atomic { p == UNMAPS || mine -> break }
       od;
#ifdef ANSWER_FIRST
       atomic { answer() };
#endif
       if
       :: strict && COUNT -> flush()
       :: atomic { else }
       fi;
       if
       :: atomic { broken -> goto failed }
       :: atomic { else }
       fi;
       release();
       atomic { answer() };
#ifdef EARLY
       early_start();
#endif
       atomic {
           lock = 0;
           if
           :: p == UNMAPS && !more -> break
           :: else
           fi
       }
    od;
    atomic { goto over };
failed:
    lock = 0;
over:
    running--
}

proctype p2m()
{
    byte me = P2M, fl, to, i, set, sum, p = UNMAPS, mine;
    bit rc, more, no_slot, wait;

    do
    :: atomic { p == PAGES -> break }
    :: atomic { p < PAGES && !tlock -> push(); mine = 1 << p; p++ };
       if
       :: no_slot ->
          /* flush_now(): the removal waits by itself. */
          atomic {
              commands[me * SMMUS] = mine;
#if SMMUS == 2
              commands[me * SMMUS + 1] = mine;
#endif
              timed_out[me] = 0;
              mapped = mapped & ~mine
          };
          atomic {
              !ON_WAY(me);
              if
              :: timed_out[me] -> broken = 1
              :: else -> released = released | mine
              fi
          }
       :: atomic { !no_slot }
       :: !no_slot && COUNT -> flush(); release_later()
       fi;
       /* Looked at without tlock: it may be another than push() saw. */
       wait = strict;
       if
       :: wait ->
          flush();
          if
          :: !rc -> release_later()
          :: else
          fi;
          atomic { assert(!(mine & STALE) || broken) }
       :: atomic { else }
       fi;
       atomic { answered = answered | mine; mine = 0; wait = 0 }
    od;
    running--
}

proctype timer()
{
    byte me = TIMER, fl, to, i, set, sum;
    bit rc, more, due;

end:
    do
    :: atomic {
           timer_state == ARMED ->
           timer_state = IDLE;
           timer_running = 1
       };
       if
       :: atomic { broken -> goto out }
       :: atomic {
              !broken && !tlock ->
              assert(!domain_freed);
              /* The oldest is as old as the timer was set for, or older. */
              if
              :: COUNT && armed_for != M &&
                 SUB(tail, armed_for) <= COUNT -> due = 1
              :: COUNT -> due = 1
              :: !(COUNT && armed_for != M &&
                   SUB(tail, armed_for) <= COUNT) -> due = 0
              fi;
              armed_for = M
          }
       fi;
       rc = 0;
       if
       :: due -> flush()
       :: atomic { else }
       fi;
       if
       :: atomic { rc -> goto out }
       :: atomic { else }
       fi;
       atomic {
           !tlock ->
           assert(!domain_freed);
           release_some();
           if
#ifndef NO_GAP
           :: more -> set_timer(M)
#endif
#ifndef NO_TIMER_AGAIN
           :: !more && COUNT -> set_timer(synced)
#endif
           :: else
           fi
       };
out:
       atomic { timer_running = 0; due = 0; more = 0; rc = 0 }
    od
}

proctype switcher()
{
    byte me = SWITCHER, fl, to, i, set, sum;
    bit rc, more;

    atomic { TAKE(lock) };
#ifdef SWITCH_LATE
    flush();
    atomic { !tlock; strict = 1 };
#else
    atomic { !tlock; strict = 1 };
    flush();
#endif
    /* What was answered before is done as well. */
    atomic { assert(broken || !(answered & STALE)); lock = 0 };
    if
    :: !rc -> release_later()
    :: else
    fi;

    atomic { TAKE(lock) };
    atomic {
        !tlock;
        strict = 0;
#ifndef NO_TIMER_OFF
        if
        :: COUNT -> set_timer(synced)
        :: else
        fi;
#endif
        lock = 0
    };
    refs--
}

proctype teardown()
{
    byte me = TEARDOWN, fl, to, i, set, sum;
    bit rc, more, at_rest;

    /* Either at once, or when all has come to rest by itself. */
    if
    :: atomic { true -> at_rest = 0 }
    :: atomic { true -> at_rest = 1 }
    fi;
    !at_rest || (!running && !refs && (broken || head == tail));

    /* A device is taken away; vCPUs may still run. */
    atomic { TAKE(lock) };
    flush();
    atomic {
        if
        :: !rc ->
           /* The stream's entry is gone, and then all of its VMID. */
           attached = 0;
           stale[0] = 0;
#if SMMUS == 2
           stale[1] = 0
#endif
        :: else
        fi;
        lock = 0
    };

    /* The vCPUs are paused before the rest. */
    !running;
    do
    :: atomic { TAKE(lock) };
       flush();
       if
       :: atomic { rc -> lock = 0; goto busy }
       :: atomic { else }
       fi;
       release();
       atomic {
           lock = 0;
           if
           :: !more ->
              /* pvi_context_reap() */
              assert(head == tail);
              assert(!STALE);
#ifndef NO_PAGES
              assert(!pages);
#endif
              /* None was lost. */
              assert((released | mapped) == ALL);
              context_freed = 1;
              break
           :: else
           fi
       }
    od;

    /* pvi_domain_free(), with the last reference. */
    !refs;
#ifdef KILL_LOCKED
    atomic { TAKE(tlock) };
#endif
    timer_state = KILLED;       /* kill_timer() */
#ifndef NO_KILL
    !timer_running;
#endif
#ifdef KILL_LOCKED
    tlock = 0;
#endif
    domain_freed = 1;
busy:
    skip
}

init {
    atomic {
        running = 2;
        if
        :: strict = 0
        :: strict = 1
        fi;
        stale[0] = ALL;
        run smmu(0);
#if SMMUS == 2
        stale[1] = ALL;
        run smmu(1);
#endif
        run slices();
        run p2m();
#ifdef SWITCH
        refs = 1;
        run switcher();
#endif
        run timer();
        run teardown()
    }
}
