/* Time in MPI as regions: each call of a function below is an execution of the region "MPI" and in it of one of its own name, as
 * "MPI_Allreduce", whichever MPI it is. Loaded before MPI's library (LD_PRELOAD), this one has the calls first, and passes them on
 * to PMPI_..., as MPI's profiling interface has it.
 *
 * No mpi.h: all arguments are integers or pointers, none wider than a register, so that a wrapper passes on as many registers and words of the
 * stack as any function has arguments, whatever a handle is (a pointer in Open MPI, an integer in MPICH).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

extern int td_region_begin(const char *name) __attribute__((weak));
extern int td_region_end(const char *name) __attribute__((weak));

#define EXPORT __attribute__((visibility("default")))
/* An error of a program without MPI (MPI_ERR_OTHER of MPICH). */
enum { ERR_OTHER = 15 };
/* Most arguments of a function, those of Fortran with the error's place and lengths of texts. */
#define PARAMETERS                                                                                                     \
	long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m, long n
#define ARGUMENTS a, b, c, d, e, f, g, h, i, j, k, l, m, n

typedef int function(PARAMETERS);

/* MPI_Pcontrol(0): nothing that begins from now on is a region. */
static atomic_int is_off;
/* Calls of MPI that this thread is in: those that MPI makes of itself (files, Fortran) are no others. */
static _Thread_local int depth __attribute__((tls_model("initial-exec")));

/* MPI's own function; NULL: there is no MPI. */
static function *passed_to(const char *name)
{
	static const char *const libraries[] = { "libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_mpifh.so.40",
		"libmpichfort.so.12", "libmpifort.so.12", "libmpi.so", "libmpich.so" };
	void *found = dlsym(RTLD_NEXT, name);
	for (size_t at = 0; !found && at < sizeof libraries / sizeof *libraries; at++) {
		/* (of one that dlopen has loaded for itself alone, as of Python's modules) */
		void *library = dlopen(libraries[at], RTLD_LAZY | RTLD_NOLOAD);
		if (library) {
			found = dlsym(library, name);
			dlclose(library);
		}
	}
	if (!found)
		fprintf(stderr, "topdown: no library of MPI has %s\n", name);
	function *own;
	*(void **)&own = found; /* (POSIX has the two be alike) */
	return own;
}

static int begun(const char *name)
{
	if (depth++ > 0 || atomic_load_explicit(&is_off, memory_order_relaxed) || !td_region_begin || !td_region_end)
		return 0;
	td_region_begin("MPI");
	td_region_begin(name);
	return 1;
}

static void ended(const char *name, int is_begun)
{
	depth--;
	if (is_begun) {
		td_region_end(name);
		td_region_end("MPI");
	}
}

static int passed_on(const char *name, const char *own, _Atomic(function *) *known, PARAMETERS)
{
	function *to = atomic_load_explicit(known, memory_order_relaxed);
	if (!to) {
		to = passed_to(own);
		atomic_store_explicit(known, to, memory_order_relaxed);
	}
	if (!to)
		return ERR_OTHER;
	int is_begun = begun(name);
	int result = to(ARGUMENTS);
	ended(name, is_begun);
	return result;
}

#define WRAPPED(symbol, own, name)                                                                                     \
	EXPORT int symbol(PARAMETERS)                                                                                      \
	{                                                                                                                  \
		static _Atomic(function *) known;                                                                              \
		return passed_on(name, own, &known, ARGUMENTS);                                                                \
	}
#define BOTH(c, fortran)                                                                                               \
	WRAPPED(MPI_##c, "PMPI_" #c, "MPI_" #c)                                                                            \
	WRAPPED(mpi_##fortran##_, "pmpi_" #fortran "_", "MPI_" #c)

BOTH(Init, init)
BOTH(Init_thread, init_thread)
BOTH(Finalize, finalize)
BOTH(Send, send)
BOTH(Bsend, bsend)
BOTH(Ssend, ssend)
BOTH(Rsend, rsend)
BOTH(Recv, recv)
BOTH(Mrecv, mrecv)
BOTH(Sendrecv, sendrecv)
BOTH(Sendrecv_replace, sendrecv_replace)
BOTH(Isend, isend)
BOTH(Ibsend, ibsend)
BOTH(Issend, issend)
BOTH(Irsend, irsend)
BOTH(Irecv, irecv)
BOTH(Start, start)
BOTH(Startall, startall)
BOTH(Probe, probe)
BOTH(Iprobe, iprobe)
BOTH(Mprobe, mprobe)
BOTH(Improbe, improbe)
BOTH(Wait, wait)
BOTH(Waitall, waitall)
BOTH(Waitany, waitany)
BOTH(Waitsome, waitsome)
BOTH(Test, test)
BOTH(Testall, testall)
BOTH(Testany, testany)
BOTH(Testsome, testsome)
BOTH(Barrier, barrier)
BOTH(Bcast, bcast)
BOTH(Gather, gather)
BOTH(Gatherv, gatherv)
BOTH(Scatter, scatter)
BOTH(Scatterv, scatterv)
BOTH(Allgather, allgather)
BOTH(Allgatherv, allgatherv)
BOTH(Alltoall, alltoall)
BOTH(Alltoallv, alltoallv)
BOTH(Alltoallw, alltoallw)
BOTH(Reduce, reduce)
BOTH(Allreduce, allreduce)
BOTH(Reduce_scatter, reduce_scatter)
BOTH(Reduce_scatter_block, reduce_scatter_block)
BOTH(Scan, scan)
BOTH(Exscan, exscan)
BOTH(Neighbor_allgather, neighbor_allgather)
BOTH(Neighbor_allgatherv, neighbor_allgatherv)
BOTH(Neighbor_alltoall, neighbor_alltoall)
BOTH(Neighbor_alltoallv, neighbor_alltoallv)
BOTH(Neighbor_alltoallw, neighbor_alltoallw)
BOTH(Ibarrier, ibarrier)
BOTH(Ibcast, ibcast)
BOTH(Igather, igather)
BOTH(Igatherv, igatherv)
BOTH(Iscatter, iscatter)
BOTH(Iscatterv, iscatterv)
BOTH(Iallgather, iallgather)
BOTH(Iallgatherv, iallgatherv)
BOTH(Ialltoall, ialltoall)
BOTH(Ialltoallv, ialltoallv)
BOTH(Ireduce, ireduce)
BOTH(Iallreduce, iallreduce)
BOTH(Ialltoallw, ialltoallw)
BOTH(Ireduce_scatter, ireduce_scatter)
BOTH(Ireduce_scatter_block, ireduce_scatter_block)
BOTH(Iscan, iscan)
BOTH(Iexscan, iexscan)
BOTH(Imrecv, imrecv)
BOTH(Comm_dup, comm_dup)
BOTH(Comm_create, comm_create)
BOTH(Comm_split, comm_split)
BOTH(Comm_split_type, comm_split_type)
BOTH(Comm_create_group, comm_create_group)
BOTH(Comm_dup_with_info, comm_dup_with_info)
BOTH(Comm_spawn, comm_spawn)
BOTH(Intercomm_create, intercomm_create)
BOTH(Intercomm_merge, intercomm_merge)
BOTH(Cart_create, cart_create)
BOTH(Cart_sub, cart_sub)
BOTH(Graph_create, graph_create)
BOTH(Dist_graph_create, dist_graph_create)
BOTH(Dist_graph_create_adjacent, dist_graph_create_adjacent)
BOTH(Comm_free, comm_free)
BOTH(Win_create, win_create)
BOTH(Win_allocate, win_allocate)
BOTH(Win_allocate_shared, win_allocate_shared)
BOTH(Win_create_dynamic, win_create_dynamic)
BOTH(Win_sync, win_sync)
BOTH(Win_test, win_test)
BOTH(Win_free, win_free)
BOTH(Win_fence, win_fence)
BOTH(Win_lock, win_lock)
BOTH(Win_unlock, win_unlock)
BOTH(Win_lock_all, win_lock_all)
BOTH(Win_unlock_all, win_unlock_all)
BOTH(Win_flush, win_flush)
BOTH(Win_flush_all, win_flush_all)
BOTH(Win_flush_local, win_flush_local)
BOTH(Win_flush_local_all, win_flush_local_all)
BOTH(Win_start, win_start)
BOTH(Win_complete, win_complete)
BOTH(Win_post, win_post)
BOTH(Win_wait, win_wait)
BOTH(Put, put)
BOTH(Get, get)
BOTH(Accumulate, accumulate)
BOTH(Get_accumulate, get_accumulate)
BOTH(Rput, rput)
BOTH(Rget, rget)
BOTH(Raccumulate, raccumulate)
BOTH(Rget_accumulate, rget_accumulate)
BOTH(Fetch_and_op, fetch_and_op)
BOTH(Compare_and_swap, compare_and_swap)
BOTH(File_open, file_open)
BOTH(File_close, file_close)
BOTH(File_sync, file_sync)
BOTH(File_read, file_read)
BOTH(File_read_all, file_read_all)
BOTH(File_read_at, file_read_at)
BOTH(File_read_at_all, file_read_at_all)
BOTH(File_write, file_write)
BOTH(File_write_all, file_write_all)
BOTH(File_write_at, file_write_at)
BOTH(File_write_at_all, file_write_at_all)
BOTH(File_read_shared, file_read_shared)
BOTH(File_write_shared, file_write_shared)
BOTH(File_read_ordered, file_read_ordered)
BOTH(File_write_ordered, file_write_ordered)
BOTH(File_iread, file_iread)
BOTH(File_iwrite, file_iwrite)
BOTH(File_iread_at, file_iread_at)
BOTH(File_iwrite_at, file_iwrite_at)
BOTH(File_set_size, file_set_size)
BOTH(File_set_view, file_set_view)

/* Others may have a use for it, too. */
static void control(int level)
{
	atomic_store_explicit(&is_off, level == 0, memory_order_relaxed);
}

EXPORT int MPI_Pcontrol(int level, ...)
{
	control(level);
	return 0;
}

EXPORT void mpi_pcontrol_(const int *level)
{
	control(*level);
}
