#define _GNU_SOURCE // sched_getaffinity
#include "base/mem.h"
#include "cli/doctor.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CORES = 4096, HOST = 64, LISTED = 8 };

// What each rank says about the place where it runs; plain bytes.
typedef struct {
    char host[HOST];
    int threads;
    int cores;                        // that it may use; 0: unknown
    unsigned char allowed[CORES / 8]; // bit c: core c
} place;

static bool has(const place *p, int core)
{
    return p->allowed[core / 8] >> core % 8 & 1;
}

static void look(place *own)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    // Without the variable a run has the threads of its configuration, one by default.
    *own = (place){.threads = getenv("OMP_NUM_THREADS") ? omp_get_max_threads() : 1};
    MPI_Get_processor_name(name, &length);
    snprintf(own->host, sizeof own->host, "%.*s", HOST - 1, name);
    cpu_set_t *set = CPU_ALLOC(CORES);
    if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(CORES), set) == 0) {
        for (int c = 0; c < CORES; c++) {
            if (CPU_ISSET_S((size_t)c, CPU_ALLOC_SIZE(CORES), set)) {
                own->allowed[c / 8] |= (unsigned char)(1 << c % 8);
                own->cores++;
            }
        }
    }
    CPU_FREE(set);
}

// "0-3, 8": as taskset and numactl write it.
static void list_cores(char *text, size_t size, const place *p)
{
    text[0] = '\0';
    for (int c = 0; c < CORES; c++) {
        if (has(p, c) && (c == 0 || !has(p, c - 1))) {
            int end = c;
            while (end + 1 < CORES && has(p, end + 1)) {
                end++;
            }
            rfa_doctor_append(text, size, "%s%d", text[0] ? "," : "", c);
            if (end > c) {
                rfa_doctor_append(text, size, "-%d", end);
            }
        }
    }
}

static bool same_host(const place *a, const place *b)
{
    return strcmp(a->host, b->host) == 0;
}

static bool within(const place *inner, const place *outer)
{
    for (int i = 0; i < CORES / 8; i++) {
        if (inner->allowed[i] & ~outer->allowed[i]) {
            return false;
        }
    }
    return true;
}

// Whether an earlier rank is on this host. Neighbours first: that is where it usually is.
static bool seen_before(const place *all, int r)
{
    for (int q = r - 1; q >= 0; q--) {
        if (same_host(&all[q], &all[r])) {
            return true;
        }
    }
    return false;
}

static void report_hosts(rfa_doctor *doctor, const place *all, int ranks)
{
    char text[512] = "";
    int hosts = 0;
    for (int r = 0; r < ranks; r++) {
        if (seen_before(all, r)) {
            continue;
        }
        if (hosts++ < LISTED) {
            int here = 0;
            for (int q = r; q < ranks; q++) {
                here += same_host(&all[q], &all[r]);
            }
            rfa_doctor_append(text, sizeof text, "%s%s %d", hosts > 1 ? ", " : "", all[r].host,
                              here);
        }
    }
    rfa_doctor_line(doctor, RFA_DOCTOR_OK, "hosts", "%d rank%s on %d host%s: %s%s", ranks,
                    ranks > 1 ? "s" : "", hosts, hosts > 1 ? "s" : "", text,
                    hosts > LISTED ? ", ..." : "");
}

static void report_threads(rfa_doctor *doctor, const place *all, int ranks)
{
    const char *set = getenv("OMP_NUM_THREADS");
    int least = all[0].threads, most = least;
    for (int r = 1; r < ranks; r++) {
        least = all[r].threads < least ? all[r].threads : least;
        most = all[r].threads > most ? all[r].threads : most;
    }
    char range[64];
    if (least == most) {
        snprintf(range, sizeof range, "%d", most);
    } else {
        snprintf(range, sizeof range, "%d to %d", least, most);
    }
    rfa_doctor_line(doctor, RFA_DOCTOR_OK, "threads",
                    "OpenMP %s a rank (OMP_NUM_THREADS %s; in a run parallel.threads decides), "
                    "BLAS 1",
                    range, set ? set : "is not set");
}

// Ranks whose allowed cores are all among those of rank r, and their threads.
static void crowd(const place *all, int ranks, int r, int *members, int *threads)
{
    *members = *threads = 0;
    for (int q = 0; q < ranks; q++) {
        if (same_host(&all[q], &all[r]) && within(&all[q], &all[r])) {
            *members += 1;
            *threads += all[q].threads;
        }
    }
}

// Too many threads for the cores of some rank, and of all ranks that are bound to no others.
static void report_cores(rfa_doctor *doctor, const place *all, int ranks)
{
    char text[768] = "", cores[128];
    bool alike = true;
    for (int r = 1; r < ranks; r++) {
        alike &= memcmp(all[r].allowed, all[0].allowed, sizeof all[r].allowed) == 0;
    }
    for (int r = 0; r < (alike ? 1 : ranks < LISTED ? ranks : LISTED); r++) {
        list_cores(cores, sizeof cores, &all[r]);
        if (alike) {
            snprintf(text, sizeof text, "%s %s", ranks > 1 ? "each rank may use" : "it may use",
                     cores);
        } else {
            rfa_doctor_append(text, sizeof text, "%srank %d may use %s", r ? ", " : "", r, cores);
        }
    }
    if (!alike && ranks > LISTED) {
        rfa_doctor_append(text, sizeof text, ", ...");
    }
    for (int r = 0; r < ranks; r++) {
        int members = 0, threads = 0;
        crowd(all, ranks, r, &members, &threads);
        if (all[r].cores > 0 && threads > all[r].cores) {
            list_cores(cores, sizeof cores, &all[r]);
            rfa_doctor_line(doctor, RFA_DOCTOR_WARN, "cores",
                            "%s: %d rank%s with %d threads share%s %d core%s (%s) of %s: fewer "
                            "ranks or threads, more cores, or another binding (mpirun --bind-to "
                            "none)",
                            text, members, members > 1 ? "s" : "", threads, members > 1 ? "" : "s",
                            all[r].cores, all[r].cores > 1 ? "s" : "", cores, all[r].host);
            return;
        }
    }
    rfa_doctor_line(doctor, RFA_DOCTOR_OK, "cores", "%s", text);
}

void rfa_doctor_cores(rfa_doctor *doctor)
{
    const rfa_comm *world = doctor->world;
    place own, *all = NULL;
    rfa_doctor_begin(doctor, "cores");
    look(&own);
    rfa_status status = RFA_OK;
    if (world->rank == 0) {
        status = rfa_alloc(&all, world->size, sizeof *all, "hosts");
    }
    if (rfa_agree(world, status) != RFA_OK) {
        rfa_doctor_line(doctor, RFA_DOCTOR_FAIL, "cores", "%s", rfa_error_text());
        return;
    }
    MPI_Gather(&own, (int)sizeof own, MPI_BYTE, all, (int)sizeof own, MPI_BYTE, 0, world->comm);
    if (all) {
        report_hosts(doctor, all, world->size);
        report_threads(doctor, all, world->size);
        report_cores(doctor, all, world->size);
    }
    rfa_free(all);
}
