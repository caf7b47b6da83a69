/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Streams that fault too often are not recorded for a while, so that a device
 * that has gone wrong, or is made to, costs nothing and hides no other.
 *
 * All of this runs in the event queue's tasklet, so there is no lock: what
 * others may do to an entry meanwhile is smmu_ste_record()'s business.
 */

#include <xen/lib.h>
#include <xen/time.h>

#include "smmu.h"

/* The slot of a stream, or one that is given to it; NULL: all are in use. */
static struct smmu_fault_slot *slot_get(struct smmu_evtq *q, uint32_t sid)
{
    struct smmu_fault_slot *old = NULL;
    unsigned int i;

    for ( i = 0; i < SMMU_FAULT_SLOTS; i++ )
    {
        struct smmu_fault_slot *s = &q->slot[i];

        if ( s->since && s->sid == sid )
            return s;
        if ( !s->off && (!old || s->since < old->since) )
            old = s;
    }

    if ( old )
        *old = (struct smmu_fault_slot){ .sid = sid };

    return old;
}

/*
 * A sync that times out has been told, and the SMMU isn't used any more; where
 * the stream has no entry, or no memory for one, it is at least not reported.
 */
static void record(struct smmu_device *smmu, uint32_t sid, bool on)
{
    unsigned int syncs = 0;

    if ( smmu_ste_record(smmu, sid, on, &syncs) )
        atomic_inc(&smmu->stats.event_no_cutoff);
    /* Not a domain's: a stream may be nobody's. */
    atomic_add(syncs, &smmu->stats.event_sync);
}

bool smmu_cutoff_count(struct smmu_device *smmu, uint32_t sid, bool *cut_off)
{
    struct smmu_fault_slot *s = slot_get(&smmu->evtq, sid);
    s_time_t now = NOW();

    *cut_off = false;
    if ( !s )
        return true;

    if ( s->off )
    {
        /* From before, or the entry was written anew in between. */
        record(smmu, sid, false);
        atomic_inc(&smmu->stats.event_dropped);
        return false;
    }

    if ( !s->since || now - s->since >= SMMU_FAULT_WINDOW )
    {
        s->since = now;
        s->count = 0;
    }
    if ( ++s->count < SMMU_FAULTS_MAX )
        return true;

    s->off = true;
    s->since = now;
    atomic_inc(&smmu->stats.event_cutoff);
    record(smmu, sid, false);
    *cut_off = true;

    return true;
}

s_time_t smmu_cutoff_expire(struct smmu_device *smmu)
{
    s_time_t now = NOW(), next = STIME_MAX;
    unsigned int i;

    for ( i = 0; i < SMMU_FAULT_SLOTS; i++ )
    {
        struct smmu_fault_slot *s = &smmu->evtq.slot[i];

        if ( !s->off )
            continue;
        if ( now - s->since >= SMMU_CUTOFF_TIME )
        {
            s->off = false;
            s->count = 0;
            record(smmu, s->sid, true);
        }
        else
            next = min(next, s->since + SMMU_CUTOFF_TIME);
    }

    return next;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
